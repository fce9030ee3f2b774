#ifndef CLEW_TESTS_SUPPORT_TOY_PROGRAMS_H_
#define CLEW_TESTS_SUPPORT_TOY_PROGRAMS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "constraints/expr.h"
#include "constraints/trace.h"

// Small concurrent programs that are run once under a random scheduler and
// written down as constraint traces, the way a recording would give them: paths
// and coarse times, but neither the order nor the values.

namespace clew::test {

enum class Toy {
  kRacey,    // two reads and a write at computed addresses, an endless hash
  kCounter,  // read, write + 1, no lock
  kBank,     // unlocked transfers between accounts
  kBbuf,     // bounded buffer under a compare-and-swap lock with spinning
  kSbuf,     // string buffer: length and copy are two critical sections
  kPfscan,   // work queue under a lock, result without one
  kSpin,     // ping-pong on a turn variable
};
const char* ToString(Toy toy);

struct ToyOptions {
  Toy toy = Toy::kRacey;
  uint32_t threads = 4;
  uint32_t iterations = 100;  // per thread
  uint64_t seed = 1;
  // Accesses that fall into one window of the clock; 0: no times at all.
  uint32_t window = 0;
  uint32_t slack = 0;
  // Virtual cores; 0: one per thread, and no slices in the trace.
  uint32_t cores = 0;
  uint32_t switch_every = 40;  // accesses of a core between context switches
  // racey: how many upper bits of the hash each read gives away (as a branch
  // or an address would).
  uint32_t evidence_bits = 0;
  // racey: leave values out of the trace: only order and read-from matter.
  bool values = true;
  uint32_t words = 64;  // racey: size of the array, a power of two
  bool final_memory = false;
  // Counter, bank: demand just that the sum at the end came out as it did.
  bool final_sum = false;
};

struct ToyTrace {
  std::unique_ptr<constraints::ExprPool> pool;
  constraints::ConstraintTrace trace;
  constraints::AccessOrder recorded;  // what happened; a witness
};

ToyTrace MakeToy(const ToyOptions& options);

// Changes one piece of evidence at random (a condition is negated, a final
// value is changed), so that there may be no witness. False if there is none.
bool Falsify(ToyTrace& toy, uint64_t seed);

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_TOY_PROGRAMS_H_
