import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.io.ByteArrayInputStream;

/** A request whose body was read can be read again by the handler. */
class Bodies {
  static HttpServletRequest again(HttpServletRequest request, byte[] body) {
    var bytes = new ByteArrayInputStream(body);
    var stream = new ServletInputStream() {
      @Override public int read() { return bytes.read(); }
      @Override public boolean isFinished() { return bytes.available() == 0; }
      @Override public boolean isReady() { return true; }
      @Override public void setReadListener(ReadListener listener) { throw new UnsupportedOperationException(); }
    };
    return new HttpServletRequestWrapper(request) {
      @Override public ServletInputStream getInputStream() { return stream; }
    };
  }
}
