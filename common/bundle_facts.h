#ifndef CLEW_COMMON_BUNDLE_FACTS_H_
#define CLEW_COMMON_BUNDLE_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

// What is added to a bundle's manifest after the recording; the specification
// of each field is in proto/bundle.proto.

namespace clew {

// The version of the rules by which a failure gets its signature: see
// decoder/failure_signature.h. Signatures of other rules are other signatures.
inline constexpr int kSignatureRules = 2;

enum class TriggerKind : uint8_t {
  kUnknown,
  kCore,
  kUnitFailed,
  kHang,
  kRequest,
};

// Why a daemon saved a bundle.
struct Trigger {
  TriggerKind kind = TriggerKind::kUnknown;
  std::string unit;     // empty: none
  int32_t process = 0;  // 0: none
  int64_t at_ns = 0;    // wall clock since 1970
  uint64_t not_saved = 0;
  bool operator==(const Trigger&) const = default;
};

// Whether a bundle can be expected to be solved.
struct Sufficiency {
  uint32_t score = 0;  // 0..100
  bool decodes = false;
  uint32_t images_missing = 0;
  uint64_t gaps = 0;
  uint64_t gaps_at_failure = 0;
  std::vector<std::string> reasons;  // most important first
  bool operator==(const Sufficiency&) const = default;
};

}  // namespace clew

#endif  // CLEW_COMMON_BUNDLE_FACTS_H_
