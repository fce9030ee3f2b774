// clew-webhook: sends one request, which the collector left in the current
// folder, and prints the status of the answer.
//
//     clew-webhook [CA-FILE]
//
//     url       http or https
//     headers   one a line
//     body      what is posted
//
// It parses what a stranger answers, so it runs confined
// (collector/jobs/confined_child.h) and has neither the secret of the signature
// nor anything of the store. It goes where the url says and nowhere else: no
// redirects, no proxies, no cookies, no .netrc, no other protocols.
#include <curl/curl.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

namespace {

constexpr long kConnect_s = 10;
constexpr long kAll_s = 25;
constexpr size_t kAnswerBytesMax = size_t{64} << 10;

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

std::optional<std::string> ReadAll(const char* name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", name);
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The answer is not used; one that does not end is cut off.
size_t SkipAnswer(char*, size_t size, size_t count, void* skipped) {
  size_t& bytes = *static_cast<size_t*>(skipped);
  bytes += size * count;
  return bytes > kAnswerBytesMax ? 0 : size * count;
}

Headers ReadHeaders() {
  Headers headers(curl_slist_append(nullptr, "Expect:"), &curl_slist_free_all);
  std::ifstream file("headers");
  for (std::string line; std::getline(file, line);) {
    (void)curl_slist_append(headers.get(), line.c_str());
  }
  return headers;
}

// Every option of security; false: this libcurl does not know one.
bool Restrict(CURL* handle) {
  return curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https") ==
             CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_PROXY, "") == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L) ==
             CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnect_s) ==
             CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_TIMEOUT, kAll_s) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
}

bool SetRequest(CURL* handle, const std::string& url, const std::string& body,
                const curl_slist* headers) {
  return curl_easy_setopt(handle, CURLOPT_URL, url.c_str()) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_POST, 1L) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                          static_cast<curl_off_t>(body.size())) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.c_str()) ==
             CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers) == CURLE_OK;
}

// The status of the answer; 0: none, and standard error says why.
long Send(CURL* handle) {
  char why[CURL_ERROR_SIZE] = "";
  size_t skipped = 0;
  (void)curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, why);
  (void)curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, SkipAnswer);
  (void)curl_easy_setopt(handle, CURLOPT_WRITEDATA, &skipped);
  const CURLcode code = curl_easy_perform(handle);
  (void)curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, nullptr);
  const bool cut = code == CURLE_WRITE_ERROR && skipped > kAnswerBytesMax;
  if (code != CURLE_OK && !cut) {
    std::fprintf(stderr, "%s\n", why[0] ? why : curl_easy_strerror(code));
    return 0;
  }
  long status = 0;
  (void)curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

int Main(const char* ca_file) {
  const auto url = ReadAll("url");
  const auto body = ReadAll("body");
  const Headers headers = ReadHeaders();
  const Handle handle(curl_easy_init(), &curl_easy_cleanup);
  if (!url || !body || headers == nullptr || handle == nullptr) {
    return 1;
  }
  const bool ca_set =
      ca_file == nullptr ||
      curl_easy_setopt(handle.get(), CURLOPT_CAINFO, ca_file) == CURLE_OK;
  if (!ca_set || !Restrict(handle.get()) ||
      !SetRequest(handle.get(), *url, *body, headers.get())) {
    std::fprintf(stderr, "this libcurl is too old, or has no memory\n");
    return 1;
  }
  const long status = Send(handle.get());
  std::printf("%ld\n", status);
  return status == 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
    return 1;
  }
  return Main(argc > 1 ? argv[1] : nullptr);
}
