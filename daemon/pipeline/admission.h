#ifndef CLEW_DAEMON_PIPELINE_ADMISSION_H_
#define CLEW_DAEMON_PIPELINE_ADMISSION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

namespace clew::daemon {

// One failure, as far as rates go.
struct FailureKey {
  std::string program;  // or unit
  int signal = 0;       // 0: none
  uint32_t user = 0;    // who ran it; what others name so is another failure
  auto operator<=>(const FailureKey&) const = default;
};

enum class Admitted : uint8_t {
  kYes,
  kDuplicate,      // the same process just now
  kRateOfFailure,  // too many of that program and signal
  kRateOfAll,
  kRateOfUser,  // too many of a user who is not root
};
std::string_view ToString(Admitted admitted);

// What one user may have of what all share: a stranger leaves half to others.
inline uint64_t ShareOf(uint32_t user, uint64_t all) {
  return user == 0 ? all : (all + 1) / 2;
}

struct AdmissionLimits {
  uint64_t per_failure = 2;
  uint64_t all = 20;
  uint64_t period_ms = 3'600'000;
  uint64_t merge_ms = 10'000;
};

// Which failures are worth a bundle. Times are milliseconds of one clock that
// does not go back, passed in. At most kKeysMax failures and processes are
// remembered; the ones longest not seen are forgotten first. Not thread-safe.
class Admission {
 public:
  static constexpr size_t kKeysMax = 1024;

  explicit Admission(AdmissionLimits limits) : limits_(limits) {}
  // What was saved before still counts under the new limits.
  void SetLimits(AdmissionLimits limits) { limits_ = limits; }

  // Returns whether a bundle may be made; changes nothing. A `process` of 0 is
  // not known, so it is never a duplicate.
  Admitted Ask(const FailureKey& key, int32_t process, uint64_t now_ms) const;
  // Counts a bundle that is made towards the rates. Returns how many failures
  // of `key` were not saved since the last one.
  uint64_t Saved(const FailureKey& key, int32_t process, uint64_t now_ms);
  // Counts a failure for which no bundle is made. REQUIRES: Ask did not call it
  // a duplicate.
  void NotSaved(const FailureKey& key, int32_t process, uint64_t now_ms);

 private:
  struct Failure {
    std::deque<uint64_t> saved_ms;  // at most limits_.per_failure
    uint64_t not_saved = 0;
    uint64_t seen_ms = 0;
  };
  uint64_t Within(const std::deque<uint64_t>& times_ms, uint64_t now_ms) const;
  uint64_t SavedOf(uint32_t user, uint64_t now_ms) const;
  void Remember(std::deque<uint64_t>& times_ms, uint64_t limit,
                uint64_t now_ms) const;
  Failure& See(const FailureKey& key, int32_t process, uint64_t now_ms);

  AdmissionLimits limits_;
  std::map<FailureKey, Failure> failures_;
  std::map<int32_t, uint64_t> processes_;  // seen when
  std::deque<uint64_t> saved_ms_;
  std::deque<uint32_t> saved_users_;  // of each of saved_ms_
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_PIPELINE_ADMISSION_H_
