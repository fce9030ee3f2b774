#include "constraints/verdict.h"

namespace clew::constraints {

const char* ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWitness:
      return "witness";
    case Verdict::kUnsat:
      return "unsat";
    case Verdict::kUnknown:
      return "unknown";
  }
  return "?";
}

}  // namespace clew::constraints
