#include "daemon/source/inspect.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "common/os/child_process.h"
#include "common/os/file.h"
#include "common/os/process_state.h"
#include "common/sanitizer.h"
#include "daemon/loop/child.h"
#include "daemon/source/sparse_files.h"
#include "proto/inspect.pb.h"
#include "recorder/images/image_file.h"
#include "recorder/images/image_source.h"
#include "recorder/images/process_scan.h"

namespace clew::daemon {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{1} << 30;
constexpr uint64_t kCpuS = 60;
// A process may make its arguments as long as it likes; the manifest, which has
// them, may not have more than a mebibyte.
constexpr size_t kCommandBytesMax = 64 << 10;
constexpr size_t kThreadsMax = 20'000;

void Fill(const bundle::PerfMapping& from, pb::LookedMapping& to) {
  to.set_addr(from.addr.as_int());
  to.set_size_bytes(from.size_bytes);
  to.set_file_offset(from.file_offset);
  to.set_prot(from.prot);
  to.set_flags(from.flags);
  to.set_path(from.path);
  to.set_build_id(from.build_id.data(), from.build_id.size());
}

recorder::MappedImage ImageOf(const pb::ImageRequest& request) {
  return {.path = request.path(), .build_id = ToBytes(request.build_id())};
}

class Answers {
 public:
  pb::InspectReply To(const pb::InspectRequest& request) {
    pb::InspectReply reply;
    if (request.has_look()) {
      LookAt(request.look(), reply);
    } else if (request.has_image()) {
      Fetch(request.image(), reply);
    }
    return reply;
  }

 private:
  void LookAt(const pb::LookRequest& request, pb::InspectReply& reply) {
    const int32_t process = request.process();
    const auto scanned =
        scanner_.Scan({process}, request.hold() ? &held_ : nullptr);
    if (scanned.empty()) {
      return;
    }
    pb::LookedAt& to = *reply.mutable_process();
    to.set_parent(scanned[0].parent);
    for (const auto& thread : scanned[0].threads) {
      if (static_cast<size_t>(to.threads_size()) < kThreadsMax) {
        pb::LookedThread& one = *to.add_threads();
        one.set_thread(thread.thread);
        one.set_name(thread.name);
      }
    }
    for (const auto& mapping : scanned[0].mappings) {
      Fill(mapping, *to.add_mappings());
    }
    if (request.hold()) {
      for (const std::string& word :
           CommandLineOf(fmt::format("/proc/{}", process), kCommandBytesMax)) {
        to.add_command(word);
      }
      to.set_working_directory(
          WorkingDirectoryOf(fmt::format("/proc/{}", process)));
    }
  }

  void Fetch(const pb::ImageRequest& request, pb::InspectReply& reply) {
    const auto image = ImageOf(request);
    if (request.copy_to().empty()) {
      const auto size_bytes = source_.SizeOf(image);
      reply.set_size_bytes(size_bytes.value_or(0));
      reply.set_why(size_bytes ? "" : size_bytes.error().message);
      return;
    }
    const auto why =
        source_.CopyTo(image, request.bytes_max(), request.copy_to());
    reply.set_why(why ? *why : why.error().message);
  }

  recorder::ProcessScanner scanner_{"/proc"};
  recorder::HeldImages held_;
  SparseFiles files_;
  recorder::FilesHere source_{files_, &held_, recorder::ImageRights::kAnyone};
};

// All of `out`; false: the other end is closed.
bool Receive(std::span<char> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count =
        recv(STDIN_FILENO, out.data() + done, out.size() - done, 0);
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return false;
    }
    done += count > 0 ? static_cast<size_t>(count) : 0;
  }
  return true;
}

bool Send(const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = send(STDIN_FILENO, bytes.data() + done,
                               bytes.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    done += count > 0 ? static_cast<size_t>(count) : 0;
  }
  return true;
}

Status Confine() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!DropAdministration()) {
    return SystemError(errno, "cannot give up CAP_SYS_ADMIN");
  }
  (void)SetLimit(RLIMIT_CORE, 0, 0);
  (void)SetLimit(RLIMIT_CPU, kCpuS, kCpuS);
  if (!kAddressSanitizer) {
    (void)SetLimit(RLIMIT_AS, kMemoryBytes, kMemoryBytes);
  }
  return {};
}

}  // namespace

Status Inspect() {
  CLEW_RETURN_IF_ERROR(Confine());
  Answers answers;
  std::string bytes;
  for (uint32_t size = 0;
       Receive({reinterpret_cast<char*>(&size), sizeof size});) {
    if (size > kInspectBytesMax) {
      return CorruptInput("a request of {} bytes, at most {} are taken", size,
                          kInspectBytesMax);
    }
    bytes.resize(size);
    pb::InspectRequest request;
    if (!Receive(bytes) || !request.ParseFromString(bytes)) {
      return CorruptInput("{} bytes are no request", size);
    }
    const std::string reply = answers.To(request).SerializeAsString();
    close(kFirstAnswerFd);
    const auto reply_size = static_cast<uint32_t>(reply.size());
    if (!Send(std::string(reinterpret_cast<const char*>(&reply_size),
                          sizeof reply_size) +
              reply)) {
      break;
    }
  }
  return {};
}

}  // namespace clew::daemon
