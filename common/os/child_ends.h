#ifndef CLEW_COMMON_OS_CHILD_ENDS_H_
#define CLEW_COMMON_OS_CHILD_ENDS_H_

#include <cstdint>

namespace clew {

// While one lives, the thread that made it hears of the end of each child of
// this process, and of each thread that it traces: a system call that it waits
// in fails with EINTR, if it is one that may. (By SIGCHLD; where the process
// handles or ignores that already, nobody hears anything.)
//
// For one thread at a time; of this may make several.
class ChildEnds {
 public:
  ChildEnds();
  ChildEnds(const ChildEnds&) = delete;
  ChildEnds& operator=(const ChildEnds&) = delete;
  ~ChildEnds();

  // Another number than before when something has ended since.
  static uint32_t count();
};

}  // namespace clew

#endif  // CLEW_COMMON_OS_CHILD_ENDS_H_
