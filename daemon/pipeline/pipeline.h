#ifndef CLEW_DAEMON_PIPELINE_PIPELINE_H_
#define CLEW_DAEMON_PIPELINE_PIPELINE_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/bundle_facts.h"
#include "common/result.h"
#include "daemon/loop/clock.h"
#include "daemon/loop/counters.h"
#include "daemon/loop/log.h"
#include "daemon/loop/loop.h"
#include "daemon/pipeline/admission.h"
#include "daemon/spool/spool.h"

namespace clew::daemon {

struct JobEnd {
  enum class What : uint8_t {
    kDone,
    kUnchecked,  // of a preparation: done, but the check gave no score
    kRetry,      // of the moment: try again later, of a preparation at most
                 // kPrepareTriesMax times
    kDeclined,   // a limit, or settings: parked after kDeclinesMax times
    kRefuse,     // never: park it
  };
  What what = What::kDone;
  std::string why;  // one line, unless kDone
};

// What somebody else does with a bundle: a child process, or a test's fake. One
// at a time.
class BundleJob {
 public:
  virtual ~BundleJob() = default;
  // Calls `done` once, from the loop, after this has returned. Until then the
  // folder stays. An error is one of the moment.
  [[nodiscard]] virtual Status Start(
      const std::string& folder, std::function<void(const JobEnd&)> done) = 0;
};

// Brings bundles from incoming/ to uploaded/: takes them over, admits them,
// writes the trigger, has them prepared, then sent; see docs/design/daemon.md.
// One is prepared and one sent at a time, oldest first. One that cannot go on
// is put off while others are taken, and set aside in stuck/ in the end; of
// those that could not be sent, the one tried least often is next.
//
// Everything that it needs must outlive it. Not thread-safe.
class Pipeline {
 public:
  struct Parts {
    Loop& loop;
    Clock& clock;
    Spool& spool;
    Admission& admission;
    Log& log;
    Counters& counters;
    LastError& last_error;
    // Returns a random number below the bound, which is not 0. That much is
    // taken off a pause before the next attempt to send, so that hosts which
    // lost their collector at one moment do not all come back at one moment.
    std::function<uint64_t(uint64_t)> below;
    std::string proc = "/proc";
  };
  static constexpr uint64_t kRetryMsMax = 3'600'000;
  static constexpr uint64_t kDiskRetryMs = 10'000;
  static constexpr uint64_t kDeclinesMax = 24;  // about a day
  // Of one bundle's preparation: with pauses from kDiskRetryMs that double,
  // about an hour and a half.
  static constexpr uint64_t kPrepareTriesMax = 10;

  // Of a pause, at most this part is taken off by chance.
  static constexpr uint64_t kJitterDivisor = 2;

  // `upload` nullptr: nothing is sent.
  Pipeline(Parts parts, BundleJob& prepare, BundleJob* upload,
           uint64_t retry_ms);
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  ~Pipeline();

  // Looks at the folders and starts what can be. Cheap where nothing is new;
  // to be called at start and whenever something came to incoming/.
  void LookForWork();
  // Notes that a person asked for the bundle of this process.
  void ExpectRequested(int32_t process);
  void SetUpload(BundleJob* upload, uint64_t retry_ms);
  // Has bundles prepared again that were set aside: this one of stuck/ or
  // refused/, or all of stuck/ if `name` is empty. Returns how many. Fails with
  // kInvalidArgument if there is none of that name.
  [[nodiscard]] Result<uint64_t> BringBack(const std::string& name);

  // Spool::MakeRoom, counted and logged; what is being sent stays.
  [[nodiscard]] Status MakeRoom(uint64_t bytes);

  bool preparing() const { return !preparing_.empty(); }
  bool uploading() const { return !uploading_.empty(); }
  uint64_t retry_in_ms() const;  // 0: no upload is waiting for its time

 private:
  void Later(uint64_t delay_ms);
  void Trouble(std::string_view event, const std::string& name,
               const std::string& why);
  struct Place {
    Stage stage;
    std::string name;
    auto operator<=>(const Place&) const = default;
  };
  // Of a bundle that could not go on.
  struct Delay {
    uint64_t tries = 0;
    uint64_t until_ms = 0;
  };
  void PrepareNext();
  std::optional<Place> NextToPrepare();
  void PutOff(const Place& place, std::string_view event,
              const std::string& why);
  bool Adopt(const std::string& name);
  // What becomes of a bundle that came.
  enum class Fate : uint8_t { kPrepare, kRemove };
  Result<Fate> Judge(const std::string& name);
  Result<Fate> Admit(const std::string& name, const struct BundleFacts& facts,
                     std::optional<uid_t> origin);
  void NoteWriters();
  void Prepared(const std::string& name, const JobEnd& end);
  void Ready(const Place& place, const JobEnd& end);
  void UploadNext();
  void Uploaded(const std::string& name, const JobEnd& end);
  Status FileSent(const Place& place, const JobEnd& end);
  Status Park(const Place& place, const std::string& why);

  Parts parts_;
  BundleJob& prepare_;
  BundleJob* upload_;
  uint64_t retry_ms_first_;
  uint64_t retry_ms_;
  uint64_t retry_at_ms_ = 0;
  Loop::TimerId timer_ = 0;
  uint64_t timer_at_ms_ = 0;
  std::string preparing_;  // empty: none
  std::string uploading_;
  std::map<Place, Delay> delays_;  // of what is in incoming/ and checking/
  std::map<std::string, uint64_t> attempts_;  // of what is in ready/
  std::map<std::string, uint64_t> declines_;  // of them
  std::set<int32_t> requested_;
  // Bundles of others of which the recorder was seen in the unit that their
  // name claims, while it ran.
  std::set<std::string> of_their_unit_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_PIPELINE_PIPELINE_H_
