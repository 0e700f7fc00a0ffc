import com.fasterxml.jackson.databind.JsonNode;
import jakarta.servlet.*;
import jakarta.servlet.http.*;
import java.io.*;
import java.security.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.*;
import org.springframework.web.filter.OncePerRequestFilter;
import org.springframework.web.util.ContentCachingResponseWrapper;

/** Answers POST /payments once per key, with Spring MVC: a filter asks kdedup first. */
@SpringBootConfiguration
@EnableAutoConfiguration
@Import(Payments.Once.class)
@RestController
public class Payments {
  @PostMapping("/payments") // the key is handed on: after a crash the payment may come again
  @ResponseStatus(org.springframework.http.HttpStatus.CREATED)
  JsonNode pay(@RequestBody String body, @RequestHeader("Idempotency-Key") String key) throws IOException {
    return Kdedup.post(System.getenv("EFFECT"), Kdedup.JSON.readTree(body), key);
  }

  static class Once extends OncePerRequestFilter {
    final double hold = Double.parseDouble(System.getenv().getOrDefault("HOLD", "30"));
    final ScheduledExecutorService extender = Executors.newScheduledThreadPool(4);

    static JsonNode ask(String method, String key, Map<String, Object> more) throws IOException {
      var request = new HashMap<String, Object>(more);
      request.putAll(Map.of("scope", "payments", "key", key));
      return Kdedup.ask("IdempotencyService/" + method, request);
    }

    @Override protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
        throws IOException, ServletException {
      var key = request.getHeader("Idempotency-Key");
      if (!request.getMethod().equals("POST")) { chain.doFilter(request, response); return; }
      if (key == null) { response.sendError(400, "Idempotency-Key is missing"); return; }
      var body = request.getInputStream().readAllBytes();
      var begun = ask("Begin", key, Map.of("hold", hold + "s", "requestHash", sha256(request.getRequestURI(), body)));
      if (begun.has("conflict")) { response.sendError(422, "the key was used with another request"); return; }
      if (begun.has("completed")) {
        var kept = Kdedup.JSON.readTree(begun.get("completed").get("response").binaryValue());
        response.setStatus(kept.get("status").asInt());
        response.setContentType("application/json");
        response.getOutputStream().write(kept.get("body").binaryValue());
        return;
      }
      if (!begun.has("acquired")) { response.setHeader("Retry-After", "1"); response.sendError(409); return; }
      var lease = new AtomicReference<Object>(begun.get("acquired").get("lease").asText());
      var extending = extender.scheduleAtFixedRate(() -> { // else work longer than HOLD would run twice
        try { lease.set(ask("Extend", key, Map.of("lease", lease.get())).get("lease").asText()); }
        catch (IOException e) { logger.warn(e); }
      }, (long) (hold * 333), (long) (hold * 333), TimeUnit.MILLISECONDS);
      var answer = new ContentCachingResponseWrapper(response); // nobody hears of it before it is kept
      try { chain.doFilter(Bodies.again(request, body), answer); }
      catch (IOException | ServletException | RuntimeException e) { // the key is free for the next attempt
        ask("Fail", key, Map.of("lease", lease.get(), "message", String.valueOf(e)));
        throw e;
      } finally { extending.cancel(true); }
      var kept = Map.of("status", answer.getStatus(), "body", answer.getContentAsByteArray());
      var outcome = Map.of("lease", lease.get(), "response", Kdedup.JSON.writeValueAsBytes(kept));
      if (answer.getStatus() < 500) ask("Complete", key, outcome); else ask("Fail", key, Map.of("lease", lease.get()));
      answer.copyBodyToResponse();
    }

    static byte[] sha256(String path, byte[] body) throws IOException {
      try { return MessageDigest.getInstance("SHA-256").digest((path + "\n" + new String(body)).getBytes()); }
      catch (NoSuchAlgorithmException e) { throw new IOException(e); }
    }
  }

  public static void main(String[] args) { SpringApplication.run(Payments.class, "--server.port=" + System.getenv("PORT")); }
}
