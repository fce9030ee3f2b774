// Goal: the server answers real clients, and no client can keep another one
// from being answered.
// Method: an HTTP client that shares no code with the server (cpp-httplib), and
// raw sockets that break the rules.

#include "collector/web/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "collector/socket.h"
#include "collector/web/page_frame.h"
#include "tests/collector/web/served_site.h"
#include "tests/support/loopback.h"
#include "tests/support/wait_until.h"

namespace clew::collector::web {
namespace {

using clew::test::kWaitMax;
using clew::test::WaitUntil;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

Fd Connect(uint16_t port, int receive_bytes = 0) {
  Fd fd = clew::test::TcpSocket();
  if (receive_bytes != 0) {
    EXPECT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes,
                         sizeof receive_bytes),
              0);
  }
  EXPECT_TRUE(clew::test::Connect(fd, port));
  const timeval timeout{.tv_sec = kWaitMax.count(), .tv_usec = 0};
  EXPECT_EQ(
      setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout),
      0);
  return fd;
}

void Send(const Fd& fd, const std::string& text) {
  (void)!send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

// Everything until the server closes.
std::string ReadAll(const Fd& fd) {
  std::string text;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = recv(fd.get(), buffer, sizeof buffer, 0)) > 0) {
    text.append(buffer, static_cast<size_t>(count));
  }
  EXPECT_FALSE(count < 0 && errno == EAGAIN) << "it does not close: " << text;
  return text;
}

std::string Talk(uint16_t port, const std::string& request) {
  const Fd fd = Connect(port);
  Send(fd, request);
  return ReadAll(fd);
}

size_t AnswersIn(const std::string& text) {
  size_t answers = 0;
  for (size_t at = 0; (at = text.find("HTTP/1.1 200", at)) != text.npos; ++at) {
    ++answers;
  }
  return answers;
}

bool IsAnswered(uint16_t port) {
  return Talk(port,
              "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
              "Connection: close\r\n\r\n")
      .starts_with("HTTP/1.1 200 OK");
}

bool IsClosed(const Fd& fd) {
  char byte = 0;
  const ssize_t count = recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

httplib::Client ClientOf(const std::string& address, uint16_t port) {
  httplib::Client client(address, port);
  client.set_read_timeout(kWaitMax);
  client.set_write_timeout(kWaitMax);
  return client;
}

TEST(ServerTest, AnswersAnotherImplementationOfHttp) {
  ServedSite site(FillWithOne);
  httplib::Client client = ClientOf("127.0.0.1", site.port());
  client.set_keep_alive(true);
  for (int i = 0; i < 3; ++i) {
    const auto page = client.Get("/?q=" + std::string("balance"));
    ASSERT_TRUE(page) << httplib::to_string(page.error());
    EXPECT_EQ(page->status, 200);
    EXPECT_EQ(page->get_header_value("Content-Type"),
              "text/html; charset=utf-8");
    EXPECT_EQ(page->get_header_value("Cache-Control"), "no-cache, private");
    EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(page->get_header_value("Referrer-Policy"), "no-referrer");
    EXPECT_THAT(page->get_header_value("Content-Security-Policy"),
                StartsWith("default-src 'none'; style-src 'self'"));
    EXPECT_FALSE(page->has_header("Set-Cookie"));
    EXPECT_THAT(page->body, HasSubstr("assertion of balance"));
  }
  const auto style = client.Get(StylePath());
  ASSERT_TRUE(style);
  EXPECT_EQ(style->get_header_value("Content-Type"), "text/css; charset=utf-8");
  EXPECT_THAT(style->get_header_value("Cache-Control"), HasSubstr("immutable"));
  EXPECT_EQ(style->body, StyleSheet());
  const auto missing = client.Get("/nowhere");
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->status, 404);
  const auto post = client.Post("/", "x", "text/plain");
  ASSERT_TRUE(post);
  EXPECT_EQ(post->status, 405);
  EXPECT_EQ(post->get_header_value("Allow"), "GET, HEAD");
  const auto metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_THAT(metrics->body, HasSubstr("\nclew_test_total 3\n"));
  EXPECT_THAT(metrics->body,
              HasSubstr("clew_web_requests_total{status=\"404\"} 1\n"));
}

TEST(ServerTest, HeadIsGetWithoutTheBody) {
  ServedSite site(FillWithOne);
  httplib::Client client = ClientOf("127.0.0.1", site.port());
  const auto get = client.Get("/");
  const auto head = client.Head("/");
  ASSERT_TRUE(get && head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(head->get_header_value("Content-Length"),
            std::to_string(get->body.size()));
  EXPECT_THAT(Talk(site.port(),
                   "HEAD / HTTP/1.1\r\nHost: localhost\r\n"
                   "Connection: close\r\n\r\n"),
              testing::EndsWith("\r\n\r\n"));
}

TEST(ServerTest, RequestsInOnePieceAreAnsweredInOrder) {
  ServedSite site(FillWithOne);
  const std::string text =
      Talk(site.port(),
           "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
           "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
           "HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const size_t first = text.find("HTTP/1.1 200 OK");
  const size_t second = text.find("HTTP/1.1 404 Not Found");
  const size_t third = text.rfind("HTTP/1.1 200 OK");
  EXPECT_EQ(first, 0u);
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(third, std::string::npos);
}

TEST(ServerTest, ARequestMayComeByteByByte) {
  ServedSite site(FillWithOne);
  const Fd fd = Connect(site.port());
  for (const char c : std::string("GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                                  "Connection: close\r\n\r\n")) {
    Send(fd, std::string(1, c));
    // So that most of them come alone.
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_THAT(ReadAll(fd), StartsWith("HTTP/1.1 200 OK"));
}

TEST(ServerTest, BadRequestsAreAnsweredAndTheConnectionEnds) {
  ServedSite site;
  const std::string host = "Host: localhost\r\n";
  EXPECT_THAT(Talk(site.port(), "nonsense\r\n\r\n"),
              StartsWith("HTTP/1.1 400 Bad Request"));
  EXPECT_THAT(Talk(site.port(), "PUT / HTTP/1.1\r\n" + host + "\r\n"),
              StartsWith("HTTP/1.1 405 Method Not Allowed"));
  EXPECT_THAT(Talk(site.port(), "GET / HTTP/1.1\r\n" + host +
                                    "Content-Length: 5\r\n\r\nhello"),
              StartsWith("HTTP/1.1 413 Content Too Large"));
  EXPECT_THAT(Talk(site.port(),
                   "GET / HTTP/1.1\r\nHost: evil\r\n"
                   "Connection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 421 Misdirected Request"));
  EXPECT_TRUE(IsAnswered(site.port()));
}

TEST(ServerTest, AHeadWithoutEndIsRefusedAtItsLimit) {
  WebLimits limits = PatientLimits();
  limits.head_bytes_max = 2000;
  ServedSite site({}, limits);
  EXPECT_THAT(Talk(site.port(), "GET /?q=" + std::string(100'000, 'a')),
              StartsWith("HTTP/1.1 431 Request Header Fields Too Large"));
  // One byte less than the limit with its end is fine.
  std::string request =
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
      "Connection: close\r\nA: ";
  request += std::string(2000 - 4 - request.size(), 'a') + "\r\n\r\n";
  EXPECT_THAT(Talk(site.port(), request), StartsWith("HTTP/1.1 200 OK"));
}

TEST(ServerTest, AConnectionEndsAfterItsRequests) {
  WebLimits limits = PatientLimits();
  limits.requests_per_connection_max = 2;
  ServedSite site({}, limits);
  const std::string request =
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string text = Talk(site.port(), request + request + request);
  EXPECT_THAT(text, HasSubstr("Connection: close"));
  EXPECT_EQ(AnswersIn(text), 2u);
}

// More slow clients than there are threads, then more than connections.
TEST(ServerTest, ClientsThatSendSlowlyStopNobody) {
  WebLimits limits = PatientLimits();
  limits.connections_max = 32;
  ServedSite site({}, limits);
  std::vector<Fd> slow;
  for (size_t i = 0; i < 3 * limits.connections_max; ++i) {
    slow.push_back(Connect(site.port()));
    Send(slow.back(), "GET / HTTP/1.1\r\nHost: local");
    if (i % 8 == 7) {
      ASSERT_TRUE(IsAnswered(site.port())) << i;
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return IsClosed(slow.front()); }));
  EXPECT_FALSE(IsClosed(slow.back()));
}

TEST(ServerTest, AHeadThatIsNotWholeInTimeEndsTheConnection) {
  WebLimits limits = PatientLimits();
  limits.head_time_max = milliseconds(300);
  ServedSite site({}, limits);
  const auto start = std::chrono::steady_clock::now();
  const Fd fd = Connect(site.port());
  // A byte now and then does not extend it.
  EXPECT_TRUE(WaitUntil([&] {
    Send(fd, "G");
    return IsClosed(fd);
  }));
  EXPECT_GE(std::chrono::steady_clock::now() - start, limits.head_time_max);
}

TEST(ServerTest, AnIdleConnectionEnds) {
  WebLimits limits = PatientLimits();
  limits.idle_time_max = milliseconds(200);
  ServedSite site({}, limits);
  const Fd fd = Connect(site.port());
  Send(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(ReadAll(fd), StartsWith("HTTP/1.1 200 OK"));  // until it closes
}

// A connection that may go on does not, where another one could need its place.
TEST(ServerTest, AFullServerEndsAConnectionAfterItsAnswer) {
  const std::string request =
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const size_t connections_max : {size_t{1}, size_t{2}}) {
    WebLimits limits = PatientLimits();
    limits.connections_max = connections_max;
    limits.idle_time_max = milliseconds(100);
    ServedSite site({}, limits);
    EXPECT_EQ(AnswersIn(Talk(site.port(), request + request)), connections_max);
  }
}

std::vector<int> OpenDescriptors() {
  std::vector<int> open;
  for (const auto& at : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string name = at.path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    open.push_back(fd);
  }
  return open;
}

bool IsListening(int fd, uint16_t port) {
  int listens = 0;
  socklen_t size = sizeof listens;
  sockaddr_in address{};
  socklen_t address_size = sizeof address;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 &&
         listens != 0 &&
         getsockname(fd, reinterpret_cast<sockaddr*>(&address),
                     &address_size) == 0 &&
         address.sin_port == htons(port);
}

// From here on the kernel takes a few kilobytes of an answer to a client that
// does not read, whatever the system's limits are. The server is in this
// process, and its connections have what its listening socket has.
void LeaveLittleRoom(uint16_t port) {
  constexpr int kBytes = 4096;
  for (const int fd : OpenDescriptors()) {
    if (IsListening(fd, port)) {
      ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBytes, sizeof kBytes),
                0);
      return;
    }
  }
  FAIL() << "nobody listens on " << port;
}

// A client that asks much and reads nothing, with little room for answers.
Fd ConnectDeaf(uint16_t port) {
  Fd fd = Connect(port, /*receive_bytes=*/4096);
  std::string many;
  for (int i = 0; i < 500; ++i) {
    many += "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  Send(fd, many);
  return fd;
}

bool Happens(const Fd& fd, short event) {
  pollfd polled{fd.get(), event, 0};
  return poll(&polled, 1, static_cast<int>(milliseconds(kWaitMax).count())) ==
         1;
}

// Whether the server gives up `fd`.
bool IsReset(const Fd& fd) { return Happens(fd, POLLRDHUP); }

TEST(ServerTest, AnAnswerThatIsNotReadInTimeEndsTheConnection) {
  WebLimits limits = PatientLimits();
  limits.answer_time_max = milliseconds(300);
  ServedSite site(FillWithFleet, limits);
  LeaveLittleRoom(site.port());
  EXPECT_TRUE(IsReset(ConnectDeaf(site.port())));
}

TEST(ServerTest, AnswersThatNobodyReadsStayBelowTheirLimit) {
  WebLimits limits = PatientLimits();
  limits.answers_bytes_max = 70'000;  // one page of 53 kB
  ServedSite site(FillWithFleet, limits);
  LeaveLittleRoom(site.port());
  const Fd first = ConnectDeaf(site.port());
  ASSERT_TRUE(Happens(first, POLLIN)) << "a part of its first answer";
  const Fd second = ConnectDeaf(site.port());
  EXPECT_TRUE(IsReset(first));
  EXPECT_FALSE(IsClosed(second));
  EXPECT_TRUE(IsAnswered(site.port()));
}

// Clients that ask and never read: the answers stay below their limit.
TEST(ServerTest, ClientsThatDoNotReadStopNobody) {
  WebLimits limits = PatientLimits();
  limits.connections_max = 64;
  limits.answers_bytes_max = 1 << 20;
  limits.answer_time_max = milliseconds(2000);
  ServedSite site(FillWithHostileNames, limits);
  std::vector<Fd> deaf;
  std::string many;
  for (int i = 0; i < 200; ++i) {
    many += "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  for (size_t i = 0; i < 100; ++i) {
    deaf.push_back(Connect(site.port()));
    Send(deaf.back(), many);
    if (i % 10 == 9) {
      ASSERT_TRUE(IsAnswered(site.port())) << i;
    }
  }
}

// Calls of this process: CMakeLists.txt has the linker lead them here.
std::atomic<uint64_t> polls = 0;
std::atomic<uint64_t> accepts_in_vain = 0;  // there was no descriptor

}  // namespace

int RealPoll(pollfd* fds, nfds_t count, int timeout_ms) __asm__("__real_poll");
int RealAccept(int fd, sockaddr* address, socklen_t* size,
               int flags) __asm__("__real_accept4");
int CountedPoll(pollfd* fds, nfds_t count,
                int timeout_ms) __asm__("__wrap_poll");
int CountedPoll(pollfd* fds, nfds_t count, int timeout_ms) {
  ++polls;
  return RealPoll(fds, count, timeout_ms);
}
int CountedAccept(int fd, sockaddr* address, socklen_t* size,
                  int flags) __asm__("__wrap_accept4");
int CountedAccept(int fd, sockaddr* address, socklen_t* size, int flags) {
  const int accepted = RealAccept(fd, address, size, flags);
  accepts_in_vain += accepted < 0 && errno == EMFILE ? 1 : 0;
  return accepted;
}

namespace {

// The connection waits until there is a descriptor for it, and the server does
// not turn round and round meanwhile: it tries once in 100 ms.
TEST(ServerTest, WithoutADescriptorLeftConnectionsWait) {
  ServedSite site;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(std::ranges::max(OpenDescriptors())) + 20;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<Fd> all;
  do {
    all.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  } while (all.back().get() >= 0);
  all.resize(all.size() - 2);  // leaves one, for the client
  const auto start = std::chrono::steady_clock::now();
  accepts_in_vain = 0;
  polls = 0;
  const Fd client = Connect(site.port());
  Send(client,
       "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
       "Connection: close\r\n\r\n");
  EXPECT_TRUE(WaitUntil([] { return accepts_in_vain >= 4; }));
  const uint64_t polled = polls;
  const uint64_t tried = accepts_in_vain;
  const auto taken = std::chrono::steady_clock::now() - start;
  EXPECT_LE(tried, 1 + static_cast<uint64_t>(taken / milliseconds(100)));
  // For each attempt it waits for the listener, and then without it.
  EXPECT_GE(polled, tried);
  EXPECT_LE(polled, 2 * tried + 2);
  char byte = 0;
  EXPECT_EQ(recv(client.get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  all.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(ReadAll(client), StartsWith("HTTP/1.1 200 OK"));
}

TEST(ServerTest, StopEndsConnectionsAndTwiceIsOnce) {
  ServedSite site;
  const uint16_t port = site.port();
  const Fd fd = Connect(port);
  Send(fd, "GET ");
  site.server().Stop();
  site.server().Stop();
  EXPECT_EQ(ReadAll(fd), "");
  EXPECT_FALSE(clew::test::Connect(clew::test::TcpSocket(), port));
}

TEST(ServerTest, StopWaitsForRequestsAtWork) {
  ServedSite site;
  std::atomic<bool> begun = false;
  std::atomic<bool> ended = false;
  site.catalogue.on_query = [&] {
    begun = true;
    // A Stop that does not wait would come back meanwhile.
    std::this_thread::sleep_for(milliseconds(300));
    ended = true;
  };
  const Fd fd = Connect(site.port());
  Send(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(WaitUntil([&] { return begun.load(); }));
  site.server().Stop();
  EXPECT_TRUE(ended);
}

TEST(ServerTest, StartSaysWhyItCannot) {
  StoreAndCatalogue data;
  WebOptions options;
  options.address = "localhost";
  const auto named = Server::Start(options, *data.store, data.catalogue);
  ASSERT_FALSE(named.has_value());
  EXPECT_EQ(named.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(named.error().message, HasSubstr("wanted a numeric address"));
  options.address = "127.0.0.1";
  options.threads = 0;
  EXPECT_EQ(Server::Start(options, *data.store, data.catalogue).error().code,
            ErrorCode::kInvalidArgument);
  ServedSite other;
  options.threads = 1;
  options.port = other.port();
  const auto taken = Server::Start(options, *data.store, data.catalogue);
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, ErrorCode::kSystem);
  EXPECT_THAT(taken.error().message,
              HasSubstr(fmt::format("127.0.0.1 port {}: Address already in use",
                                    other.port())));
}

TEST(ServerTest, AnswersOverIpv6) {
  StoreAndCatalogue data;
  WebOptions options;
  options.address = "::1";
  const auto server = Server::Start(options, *data.store, data.catalogue);
  if (!server && (server.error().sys_errno == EADDRNOTAVAIL ||
                  server.error().sys_errno == EAFNOSUPPORT)) {
    GTEST_SKIP() << "no IPv6 here: " << server.error().message;
  }
  ASSERT_TRUE(server.has_value()) << server.error().message;
  httplib::Client client = ClientOf("::1", (*server)->port());
  const auto page = client.Get("/");
  ASSERT_TRUE(page) << httplib::to_string(page.error());
  EXPECT_EQ(page->status, 200);
}

TEST(ServerTest, ManyClientsAtOnce) {
  ServedSite site(FillWithFleet);
  std::vector<std::jthread> clients;
  std::atomic<int> answered = 0;
  clients.reserve(8);
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      httplib::Client client = ClientOf("127.0.0.1", site.port());
      client.set_keep_alive(true);
      for (int k = 0; k < 25; ++k) {
        const auto page = client.Get(
            k % 2 == 0 ? "/?page=2" : "/bundles/" + SampleId(5).hex());
        answered += page && page->status == 200 ? 1 : 0;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(answered, 200);
}

}  // namespace
}  // namespace clew::collector::web
