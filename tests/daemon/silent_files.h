#ifndef CLEW_TESTS_DAEMON_SILENT_FILES_H_
#define CLEW_TESTS_DAEMON_SILENT_FILES_H_

#include <sys/types.h>

#include <string>

namespace clew::daemon::test {

// A file system with one file, lib.so, which any user may map: its server (a
// process) answers the first open, and then neither opens nor reads, for ever.
// Who asks waits and cannot be killed, until this is destroyed.
class SilentFiles {
 public:
  // At `folder`, which is made. Works where there is /dev/fuse, and we may
  // mount; ok() says.
  explicit SilentFiles(const std::string& folder);
  ~SilentFiles();
  SilentFiles(const SilentFiles&) = delete;
  SilentFiles& operator=(const SilentFiles&) = delete;
  bool ok() const { return server_ > 0; }
  std::string file() const { return folder_ + "/lib.so"; }

 private:
  std::string folder_;
  pid_t server_ = -1;
};

}  // namespace clew::daemon::test

#endif  // CLEW_TESTS_DAEMON_SILENT_FILES_H_
