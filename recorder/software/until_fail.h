#ifndef CLEW_RECORDER_SOFTWARE_UNTIL_FAIL_H_
#define CLEW_RECORDER_SOFTWARE_UNTIL_FAIL_H_

#include <cstdint>

#include "common/progress.h"
#include "common/result.h"
#include "recorder/software/record.h"

namespace clew::recorder {

inline constexpr uint32_t kJobsMax = 64;

struct UntilFail {
  uint32_t tries_max = 0;
  uint32_t jobs = 1;  // runs at once, 1..kJobsMax
};

// Records with seeds options.seed, +1, ... until a run fails, at most
// `tries_max` times; bundles of runs that do not fail are dropped. The outcome
// tells the seed: it is the least of these seeds whose run fails, whatever
// `jobs` is. Likewise an error is that of the least seed whose recording has
// one, if no lower seed's run fails. With is_free, where seeds say nothing, it
// is the first run that fails or cannot be recorded.
//
// kInvalidArgument: `jobs` is out of range, or as Record. kLimit: none failed;
// the message says with which exit statuses they ended. kSystem: as Record, or
// a process that recorded a run died. `progress` may be null.
//
// With one job the runs are recorded in this process, as by Record. With
// several each is recorded in another process (SeedWorker): its standard input
// is /dev/null, it has no terminal, and what it leaves running ends with the
// search. Until that returns, SIGINT, SIGTERM and SIGHUP end the search: all
// processes of its runs are killed, their files removed, and then the signal
// acts on this process as it would have before. Where this process is killed,
// runs end too, and what is left is the partial folder of a BundleWriter that
// died. REQUIRES with several: this process has one thread and `options` no
// turns_path.
[[nodiscard]] Result<RecordOutcome> RecordUntilFail(
    const RecordOptions& options, const UntilFail& how, ProgressSink* progress);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_UNTIL_FAIL_H_
