#include "bench/native_subjects.h"

namespace clew::bench {
namespace {

// A threaded HTTP server in python3, in front of a table.
constexpr const char* kPythonServer = R"(
import http.server, socketserver, sys
asked = {}
class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self): return "client"
    def log_message(self, *unused): pass
    def do_GET(self):
        asked[self.path] = asked.get(self.path, 0) + 1
        body = b"%d\n" % asked[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64
Server(sys.argv[1], Handler).serve_forever()
)";

}  // namespace

const std::vector<Subject>& Attached() {
  static const std::vector<Subject> kSubjects = {
      {"sqlite_threads",
       {CLEW_BENCH_PROGRAMS "/sqlite_threads",
        "file:clew?mode=memory&cache=shared", "100000000"}},
      {"http",
       {CLEW_BENCH_HTTP, "SOCKET"},
       {"GET /some HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", ""}}};
  return kSubjects;
}

const std::vector<Subject>& Real() {
  static const std::vector<Subject> kSubjects = {
      {"memcached",
       {"memcached", "-u", "root", "-t", "4", "-s", "SOCKET"},
       {"set k 0 0 5\r\nhello\r\nget k\r\n", "END\r\n"}},
      {"redis-server",
       {"redis-server", "--port", "0", "--unixsocket", "SOCKET", "--io-threads",
        "4", "--io-threads-do-reads", "yes", "--save", ""},
       {"INCR n\r\n", "\r\n"},
       16},
      {"python3",
       {"python3", "-c", kPythonServer, "SOCKET"},
       {"GET /some HTTP/1.0\r\n\r\n", ""}},
      {"zstd", {"zstd", "-T4", "-19", "-q", "-c", "INPUT"}}};
  return kSubjects;
}

const std::vector<Subject>& Launched() {
  static const std::vector<Subject> kSubjects = {
      {"pfscan", {CLEW_BENCH_PROGRAMS "/pfscan"}},
      {"bbuf", {CLEW_BENCH_PROGRAMS "/bbuf"}},
      {"sqlite_threads", {CLEW_BENCH_PROGRAMS "/sqlite_threads"}}};
  return kSubjects;
}

const std::vector<Subject>& Failing() {
  static const std::vector<Subject> kSubjects = {
      {"bank", {CLEW_BENCH_PROGRAMS "/bank"}},
      {"bbuf", {CLEW_BENCH_PROGRAMS "/bbuf"}},
      {"sbuf", {CLEW_BENCH_PROGRAMS "/sbuf"}},
      {"pfscan", {CLEW_BENCH_PROGRAMS "/pfscan"}},
      {"order", {CLEW_BENCH_PROGRAMS "/order"}},
      {"uaf", {CLEW_BENCH_PROGRAMS "/uaf"}},
      {"buffer5", {CLEW_BENCH_PROGRAMS "/buffer5"}},
      {"lost_wakeup", {CLEW_BENCH_PROGRAMS "/lost_wakeup"}},
      {"vector_total", {CLEW_BENCH_PROGRAMS "/vector_total"}},
      {"wide_total", {CLEW_BENCH_PROGRAMS "/wide_total"}},
      {"changed_text", {CLEW_BENCH_PROGRAMS "/wide/changed_text"}},
      {"dot_product", {CLEW_BENCH_PROGRAMS "/wide/dot_product"}},
      {"early_table", {CLEW_BENCH_PROGRAMS "/wide/early_table"}},
      {"torn_copy", {CLEW_BENCH_PROGRAMS "/wide/torn_copy"}}};
  return kSubjects;
}

}  // namespace clew::bench
