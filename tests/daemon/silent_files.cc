#include "tests/daemon/silent_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "common/os/fd.h"

namespace clew::daemon::test {
namespace {

constexpr uint64_t kFileNode = 2;
constexpr uint64_t kFileBytes = 1 << 20;

// Source: linux/fuse.h, the protocol's structures.
class Server {
 public:
  explicit Server(int fd) : fd_(fd) {}

  // Until there is nothing to serve any more.
  void Run() {
    alignas(fuse_in_header) std::array<char, 256 << 10> request = {};
    while (read(fd_, request.data(), request.size()) > 0 || errno == EINTR) {
      Answer(request.data());
    }
  }

 private:
  void Answer(const char* request) {
    fuse_in_header in = {};
    std::memcpy(&in, request, sizeof in);
    const char* arguments = request + sizeof in;
    switch (in.opcode) {
      case FUSE_INIT:
        return Reply(in, fuse_init_out{.major = FUSE_KERNEL_VERSION,
                                       .minor = FUSE_KERNEL_MINOR_VERSION,
                                       .max_readahead = 0,
                                       .flags = 0,
                                       .max_background = 0,
                                       .congestion_threshold = 0,
                                       .max_write = 4096,
                                       .time_gran = 1,
                                       .max_pages = 0,
                                       .map_alignment = 0,
                                       .flags2 = 0,
                                       .unused = {}});
      case FUSE_LOOKUP:
        return std::string_view(arguments) == "lib.so"
                   ? Reply(in, fuse_entry_out{.nodeid = kFileNode,
                                              .generation = 0,
                                              .entry_valid = 1000,
                                              .attr_valid = 1000,
                                              .entry_valid_nsec = 0,
                                              .attr_valid_nsec = 0,
                                              .attr = AttributesOf(kFileNode)})
                   : Refuse(in, ENOENT);
      case FUSE_GETATTR:
        return Reply(in, fuse_attr_out{.attr_valid = 1000,
                                       .attr_valid_nsec = 0,
                                       .dummy = 0,
                                       .attr = AttributesOf(in.nodeid)});
      case FUSE_OPEN:
        if (opened_++ == 0) {
          Reply(in, fuse_open_out{.fh = 0, .open_flags = 0, .padding = 0});
        }
        return;
      case FUSE_READ:
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;  // the first by intention, the others want no answer
      default:
        return Refuse(in, ENOSYS);
    }
  }

  static fuse_attr AttributesOf(uint64_t node) {
    fuse_attr attributes = {};
    attributes.ino = node;
    attributes.size = node == kFileNode ? kFileBytes : 0;
    attributes.mode = node == kFileNode ? S_IFREG | 0755 : S_IFDIR | 0755;
    attributes.nlink = 1;
    attributes.blksize = 4096;
    return attributes;
  }

  template <class Body>
  void Reply(const fuse_in_header& in, Body body) {
    Send(in, 0, &body, sizeof body);
  }
  void Refuse(const fuse_in_header& in, int error) {
    Send(in, -error, nullptr, 0);
  }
  void Send(const fuse_in_header& in, int error, void* body, size_t size) {
    fuse_out_header out = {.len = static_cast<uint32_t>(sizeof out + size),
                           .error = error,
                           .unique = in.unique};
    const iovec parts[] = {{&out, sizeof out}, {body, size}};
    (void)!writev(fd_, parts, size == 0 ? 1 : 2);
  }

  int fd_;
  int opened_ = 0;
};

}  // namespace

SilentFiles::SilentFiles(const std::string& folder) : folder_(folder) {
  const Fd fd(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  mkdir(folder.c_str(), 0755);
  const std::string options = fmt::format(
      "fd={},rootmode=40755,user_id=0,group_id=0,allow_other", fd.get());
  if (!fd.is_open() || mount("silent", folder.c_str(), "fuse",
                             MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return;
  }
  server_ = fork();
  if (server_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Server(fd.get()).Run();
    _exit(0);
  }
}

SilentFiles::~SilentFiles() {
  if (server_ > 0) {
    umount2(folder_.c_str(), MNT_DETACH);
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
  }
}

}  // namespace clew::daemon::test
