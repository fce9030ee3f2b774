#ifndef CLEW_DAEMON_SPOOL_BOUNDED_WALK_H_
#define CLEW_DAEMON_SPOOL_BOUNDED_WALK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace clew::daemon {

// How many entries of folders may still be looked at. Others fill some folders,
// and may do so with millions of files or with endlessly nested folders.
class WalkBudget {
 public:
  explicit WalkBudget(size_t entries) : left_(entries) {}
  // Takes one entry. Returns false if none is left.
  bool Take() {
    if (left_ == 0) {
      cut_ = true;
      return false;
    }
    --left_;
    return true;
  }
  // Returns whether something was not looked at.
  bool is_cut() const { return cut_; }
  void Cut() { cut_ = true; }

 private:
  size_t left_;
  bool cut_ = false;
};

// Folders below a folder, as deep as is looked at. A bundle has fewer.
inline constexpr int kWalkDepthMax = 32;

// Names in a folder, as many as the budget has; of none if it is not there.
std::vector<std::string> NamesIn(const std::string& folder, WalkBudget& budget);

// Bytes on disk of a file or a tree; what vanishes meanwhile counts nothing.
// The budget is cut, too, by what is deeper than kWalkDepthMax.
uint64_t DiskBytes(const std::string& path, WalkBudget& budget);

// Removes what is in the folder, as much as the budget has, whatever its depth;
// follows no link. REQUIRES: the folder is ours alone. True: it is empty.
bool EmptySome(const std::string& folder, WalkBudget& budget);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SPOOL_BOUNDED_WALK_H_
