#include "collector/notify/webhook.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <span>

#include "collector/catalogue/text.h"
#include "collector/jobs/confined_child.h"
#include "collector/jobs/job.h"
#include "common/os/fd.h"
#include "common/os/file.h"
#include "common/text/hex.h"
#include "transfer/sha256.h"

namespace clew::collector {
namespace {

constexpr size_t kWhyBytesMax = 512;

// Certificates, and what names are looked up with.
const std::vector<std::string>& ReadableFiles() {
  static const std::vector<std::string> files = {
      "/etc/ssl",           "/etc/resolv.conf", "/etc/hosts",
      "/etc/nsswitch.conf", "/etc/gai.conf",    "/etc/host.conf"};
  return files;
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A plain file of few bytes, opened once and not waited for.
Result<std::string> ReadSmall(const Fd& file, const std::string& path,
                              size_t bytes_max) {
  std::string text(bytes_max + 1, '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0) {
    return SystemError(errno, fmt::format("cannot read {:?}", path));
  }
  text.resize(static_cast<size_t>(size));
  return text;
}

Status WriteFile(const std::string& path, std::string_view text) {
  CLEW_ASSIGN_OR_RETURN(file, PosixFileSystem().Create(path));
  return file->Append(BytesOf(text));
}

// A folder that goes with the object.
class RequestFolder {
 public:
  explicit RequestFolder(std::string path) : path_(std::move(path)) {}
  RequestFolder(const RequestFolder&) = delete;
  RequestFolder& operator=(const RequestFolder&) = delete;
  ~RequestFolder() {
    // What cannot be removed now is before the next request.
    (void)PosixFileSystem().RemoveAll(path_);
  }
  Status Fill(std::string_view url, std::string_view headers,
              std::string_view body) const {
    CLEW_RETURN_IF_ERROR(PosixFileSystem().RemoveAll(path_));
    CLEW_RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(path_));
    CLEW_RETURN_IF_ERROR(WriteFile(path_ + "/url", url));
    CLEW_RETURN_IF_ERROR(WriteFile(path_ + "/headers", headers));
    return WriteFile(path_ + "/body", body);
  }

 private:
  const std::string path_;
};

ConfinedChildRequest RequestOf(const WebhookOptions& options) {
  ConfinedChildRequest request;
  request.arguments = {options.program};
  request.readable = ReadableFiles();
  if (!options.ca_file.empty()) {
    request.arguments.push_back(options.ca_file);
    request.readable.push_back(options.ca_file);
  }
  request.folder = options.folder;
  request.limits = {.wall_s = options.time_limit_s,
                    .cpu_s = 10,
                    .memory_bytes = uint64_t{256} << 20,
                    .address_bytes = uint64_t{2} << 30,
                    .file_bytes = 4096,
                    .open_files = 64,
                    .output_bytes = 4096};
  request.may_connect = true;
  request.stop_fd = options.stop_fd;
  return request;
}

// Of a receiver or a network: it may pass.
std::unexpected<Error> NotSent(std::string why) {
  return std::unexpected(Error{ErrorCode::kSystem, std::move(why)});
}

Status Judge(const ConfinedChildOutcome& outcome) {
  if (outcome.end == ConfinedChildEnd::kStopped) {
    return SystemError(ECANCELED, "the notification was broken off");
  }
  if (outcome.end != ConfinedChildEnd::kExited ||
      outcome.exit_status != kExitOk) {
    return NotSent(CleanLine(Describe("clew-webhook", outcome), kWhyBytesMax));
  }
  unsigned status = 0;
  const std::string& said = outcome.output;
  (void)std::from_chars(said.data(), said.data() + said.size(), status);
  if (status < 200 || status > 299) {
    return NotSent(
        fmt::format("the receiver answered {}, wanted 200 to 299", status));
  }
  return {};
}

}  // namespace

Status CheckWebhookUrl(std::string_view url) {
  const auto is_scheme = [&](std::string_view scheme) {
    return url.starts_with(scheme) && url.size() > scheme.size();
  };
  const bool plain =
      std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; });
  const std::string_view host = url.substr(
      0, url.find_first_of("/?#", std::min(url.find("//") + 2, url.size())));
  if (url.size() > kWebhookUrlBytesMax || !plain ||
      (!is_scheme("http://") && !is_scheme("https://")) ||
      host.find('@') != std::string_view::npos) {
    return InvalidArgument(
        "webhook has {} bytes, wanted at most {} of a url that begins with "
        "http:// or https:// and has neither spaces nor a user's name",
        url.size(), kWebhookUrlBytesMax);
  }
  return {};
}

Result<std::string> ReadWebhookSecret(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) {
    return SystemError(errno, fmt::format("cannot open {:?}", path));
  }
  if (!S_ISREG(status.st_mode) || (status.st_mode & S_IRWXO) != 0) {
    return InvalidArgument(
        "{:?}: mode is {:04o}, wanted a file that nobody but the collector can "
        "read; chmod o= it",
        path, status.st_mode & 07777);
  }
  CLEW_ASSIGN_OR_RETURN(text, ReadSmall(file, path, kSecretBytesMax));
  text.resize(text.find_last_not_of(" \t\r\n") + 1);
  if (text.size() < kSecretBytesMin || text.size() > kSecretBytesMax) {
    return InvalidArgument(
        "{:?}: a secret of {} bytes, wanted {} to {}; make one with 'openssl "
        "rand -hex 32'",
        path, text.size(), kSecretBytesMin, kSecretBytesMax);
  }
  return text;
}

std::string WebhookSignature(std::string_view secret, int64_t time_s,
                             std::string_view body) {
  const std::string text = fmt::format("{}.{}", time_s, body);
  return "v1=" + ToHex(transfer::HmacSha256(BytesOf(secret), BytesOf(text)));
}

Status PostWebhook(const WebhookOptions& options, std::string_view secret,
                   int64_t time_s, std::string_view body) {
  const std::string headers = fmt::format(
      "Content-Type: application/json\nUser-Agent: clew-collector\n"
      "Clew-Timestamp: {}\nClew-Signature: {}\n",
      time_s, WebhookSignature(secret, time_s, body));
  const RequestFolder folder(options.folder);
  CLEW_RETURN_IF_ERROR(folder.Fill(options.url, headers, body));
  CLEW_ASSIGN_OR_RETURN(outcome, RunConfinedChild(RequestOf(options)));
  return Judge(outcome);
}

}  // namespace clew::collector
