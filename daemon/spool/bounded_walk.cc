#include "daemon/spool/bounded_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "common/os/fd.h"

namespace clew::daemon {
namespace {

constexpr uint64_t kBlockBytes = 512;  // stat(2), st_blocks

using Listing = std::unique_ptr<DIR, int (*)(DIR*)>;

// `folder` is relative to the descriptor `in`.
Listing Open(int in, const char* folder) {
  const int fd =
      openat(in, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* listing = fd < 0 ? nullptr : fdopendir(fd);
  if (fd >= 0 && listing == nullptr) {
    close(fd);
  }
  return {listing, closedir};
}

// nullptr: no more, or none that the budget has.
const char* Next(const Listing& listing, WalkBudget& budget) {
  while (const dirent* entry = listing ? readdir(listing.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      return budget.Take() ? entry->d_name : nullptr;
    }
  }
  return nullptr;
}

uint64_t BytesAt(int in, const char* name, int depth, WalkBudget& budget) {
  struct stat info = {};
  if (in == -1 || fstatat(in, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return 0;
  }
  uint64_t bytes = static_cast<uint64_t>(info.st_blocks) * kBlockBytes;
  if (!S_ISDIR(info.st_mode)) {
    return bytes;
  }
  if (depth > kWalkDepthMax) {
    budget.Cut();
    return bytes;
  }
  const Listing listing = Open(in, name);
  while (const char* entry = Next(listing, budget)) {
    bytes += BytesAt(dirfd(listing.get()), entry, depth + 1, budget);
  }
  return bytes;
}

// Empties `folder`, and moves what is too deep to `top`, where it is found
// again: so no more descriptors are open than kWalkDepthMax.
class Remover {
 public:
  Remover(int top, WalkBudget& budget) : top_(top), budget_(budget) {}

  // True: it is empty.
  bool Empty(const Listing& folder, int depth) {
    bool empty = folder != nullptr;
    while (const char* name = Next(folder, budget_)) {
      empty = Remove(dirfd(folder.get()), name, depth) && empty;
    }
    return empty && !budget_.is_cut();
  }

 private:
  bool Remove(int in, const char* name, int depth) {
    if (unlinkat(in, name, 0) == 0 || errno == ENOENT) {
      return true;
    }
    if (depth >= kWalkDepthMax) {
      // If not, it is tried again.
      (void)renameat(in, name, top_, fmt::format("deep.{}", ++moved_).c_str());
      return false;
    }
    const bool empty = Empty(Open(in, name), depth + 1);
    return unlinkat(in, name, AT_REMOVEDIR) == 0 && empty;
  }

  int top_;
  WalkBudget& budget_;
  uint64_t moved_ = 0;
};

}  // namespace

std::vector<std::string> NamesIn(const std::string& folder,
                                 WalkBudget& budget) {
  std::vector<std::string> names;
  const Listing listing = Open(AT_FDCWD, folder.c_str());
  while (const char* name = Next(listing, budget)) {
    names.emplace_back(name);
  }
  return names;
}

uint64_t DiskBytes(const std::string& path, WalkBudget& budget) {
  return BytesAt(AT_FDCWD, path.c_str(), 0, budget);
}

bool EmptySome(const std::string& folder, WalkBudget& budget) {
  const Listing top = Open(AT_FDCWD, folder.c_str());
  if (top == nullptr) {
    return true;
  }
  Remover remover(dirfd(top.get()), budget);
  bool empty = false;
  // Again for what was moved up; each time it is that much less deep.
  do {
    rewinddir(top.get());
    empty = remover.Empty(top, 0);
  } while (!budget.is_cut() && !empty && !NamesIn(folder, budget).empty());
  return empty;
}

}  // namespace clew::daemon
