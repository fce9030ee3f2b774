#ifndef CLEW_SOLVER_CODE_GUIDE_H_
#define CLEW_SOLVER_CODE_GUIDE_H_

#include <cstdint>
#include <string_view>

#include "common/units.h"

namespace clew::solver {

// What a function of a C library does with the object in its first argument.
enum class LockCall : uint8_t {
  kNone,
  kLock,           // takes a mutex or a spin lock
  kUnlock,         // gives it back
  kReadLock,       // takes a read-write lock in its read form
  kWriteLock,      // and in its write form
  kReadWriteFree,  // gives either back
  kWaitCondition,  // gives the mutex in argument 1 back, waits, takes it again
  kJoin,           // waits for the end of a thread
};

// Returns what a function of this name does. Leading underscores count for
// nothing: a C library has the same function under several such names.
LockCall LockCallNamed(std::string_view symbol);

// Whose a place in memory is.
enum class Owner : uint8_t {
  kNobody,   // no image is there: heap, stack, the kernel
  kProgram,  // the program, and libraries that came with it
  kLibrary,  // the C and C++ libraries, whichever way they are linked in
  kLoader,   // ld.so, and the tables that it fills in
};

struct CodeFacts {
  Owner owner = Owner::kProgram;
  LockCall lock = LockCall::kNone;
};

// Knows the images of a recorded process, which this part does not. Not
// thread-safe.
class CodeGuide {
 public:
  virtual ~CodeGuide() = default;
  virtual CodeFacts At(TraceeAddr ip) = 0;
  virtual Owner OwnerOfData(TraceeAddr addr) = 0;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_CODE_GUIDE_H_
