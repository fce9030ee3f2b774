#ifndef CLEW_CONSTRAINTS_VERDICT_H_
#define CLEW_CONSTRAINTS_VERDICT_H_

#include <cstdint>

namespace clew::constraints {

// The answer of an engine.
enum class Verdict : uint8_t {
  kWitness,  // an order that the executor accepted up to its end
  kUnsat,    // no order exists (up to collisions of 64-bit state digests)
  kUnknown,  // a limit was reached or the engine is not complete
};
const char* ToString(Verdict verdict);

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_VERDICT_H_
