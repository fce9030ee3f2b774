// A small HTTP server for bench/native.cc: a few threads that share a table of
// how often each path was asked for.
//
//   bench_native_http SOCKET
#include <httplib.h>
#include <sys/socket.h>

#include <map>
#include <mutex>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  std::mutex mutex;
  std::map<std::string, int> asked;
  httplib::Server server;
  server.new_task_queue = [] { return new httplib::ThreadPool(4); };
  server.Get(R"(/(\w+))", [&](const httplib::Request& request,
                              httplib::Response& response) {
    const std::scoped_lock lock(mutex);
    response.set_content(std::to_string(++asked[request.matches[1]]) + "\n",
                         "text/plain");
  });
  return server.set_address_family(AF_UNIX).listen(argv[1], 80) ? 0 : 1;
}
