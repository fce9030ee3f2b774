#ifndef CLEW_RECORDER_IMAGES_IMAGE_FILE_H_
#define CLEW_RECORDER_IMAGES_IMAGE_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/fd.h"
#include "common/os/file.h"
#include "common/result.h"

// Files that processes have mapped executable, read by a recorder that may read
// more than they. Who maps them may change, cut and replace them at any time,
// so they are read with pread, never mapped, and a name is not trusted to lead
// to the file that was mapped.

namespace clew::recorder {

// A line of /proc/PID/maps, as far as it names the file. (proc_pid_maps(5))
struct MappedFileName {
  std::string range;   // "start-end", the file's name in map_files
  std::string device;  // "major:minor", hexadecimal
  uint64_t inode = 0;
  std::string path;
};

// Which files are taken by their path alone.
enum class ImageRights {
  kOwn,     // those that the recorder may read
  kAnyone,  // those that everybody may, and to which no link leads
};

// Whose rights a process has to files.
struct FileUser {
  uid_t user = 0;
  std::vector<gid_t> groups;
  // By owner, groups and mode, of a regular file. An access control list that
  // takes a right away from one user of a group is not looked at.
  bool MayRead(const struct stat& info) const;
  bool operator==(const FileUser&) const = default;
};
// Fsuid, fsgid and groups, of /proc/PID/status.
[[nodiscard]] Result<FileUser> FileUserOf(const std::string& proc,
                                          int32_t process);

// An ELF file, regular, held open. Moves.
class ImageFile {
 public:
  // The file that is mapped itself, whatever its name leads to now: from
  // map_files, which needs CAP_CHECKPOINT_RESTORE, or else what is at the path
  // below the process's root, or ours, if device and inode are those of the
  // mapping.
  [[nodiscard]] static Result<ImageFile> OfMapping(const std::string& proc,
                                                   int32_t process,
                                                   const MappedFileName& name);
  [[nodiscard]] static Result<ImageFile> AtPath(const std::string& path,
                                                ImageRights rights);

  uint64_t size_bytes() const { return size_bytes_; }
  bool IsReadableBy(const FileUser& user) const;
  // As BuildIdOf, with its bounds on work.
  std::vector<std::byte> BuildId() const;
  // Appends size_bytes(). False: the file is shorter now, or cannot be read.
  [[nodiscard]] Result<bool> CopyTo(WritableFile& to) const;

 private:
  ImageFile(Fd fd, uint64_t size_bytes)
      : fd_(std::move(fd)), size_bytes_(size_bytes) {}
  static Result<ImageFile> Take(Fd fd, const std::string& path);

  Fd fd_;
  uint64_t size_bytes_ = 0;
};

// Files of mappings, by the path that the mapping had; " (deleted)" is none of
// it. At most kFilesMax, each a descriptor.
class HeldImages {
 public:
  static constexpr size_t kFilesMax = 256;

  void Add(std::string_view path, ImageFile file);
  // That of this build-id, or any if that is empty; nullptr: none.
  const ImageFile* Find(std::string_view path,
                        const std::vector<std::byte>& build_id) const;

 private:
  struct Held {
    std::vector<std::byte> build_id;
    ImageFile file;
  };
  std::multimap<std::string, Held> files_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMAGES_IMAGE_FILE_H_
