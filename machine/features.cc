#include "machine/features.h"

namespace clew::machine {

std::string NamesOf(FeatureSet features) {
  std::string names;
#define CLEW_NAME(enumerator, name, carried_out) \
  if (features.Has(Feature::enumerator)) {       \
    names += names.empty() ? "" : ", ";          \
    names += name;                               \
  }
  CLEW_CPU_FEATURES(CLEW_NAME)
#undef CLEW_NAME
  return names;
}

}  // namespace clew::machine
