import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;

/** What both examples ask by: JSON over HTTP. */
class Kdedup {
  static final ObjectMapper JSON = new ObjectMapper();
  static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  /** Wrong says that no repetition mends the request. */
  static class Wrong extends IOException {
    Wrong(String text) {
      super(text);
    }
  }

  static JsonNode ask(String method, Map<String, ?> request) throws IOException {
    return post(System.getenv("API") + "/kdedup.v1." + method, request, "");
  }

  static JsonNode post(String url, Object body, String key) throws IOException {
    var request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(30))
        .header("Content-Type", "application/json").header("Idempotency-Key", key)
        .POST(HttpRequest.BodyPublishers.ofByteArray(JSON.writeValueAsBytes(body))).build();
    try {
      var answer = HTTP.send(request, HttpResponse.BodyHandlers.ofByteArray());
      var text = url + ": " + answer.statusCode() + " " + new String(answer.body());
      switch (answer.statusCode()) {
        case 200: return JSON.readTree(answer.body());
        case 400, 401, 403: throw new Wrong(text);
        default: throw new IOException(text);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException(e);
    }
  }
}
