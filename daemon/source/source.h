#ifndef CLEW_DAEMON_SOURCE_SOURCE_H_
#define CLEW_DAEMON_SOURCE_SOURCE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "bundle/manifest/bundle_writer.h"
#include "common/bundle_facts.h"
#include "common/inputs.h"
#include "common/os/fd.h"
#include "common/result.h"

namespace clew::daemon {

// What is to be saved, and what is known of the failure.
struct SaveOrder {
  Trigger trigger;
  std::string program;  // for the manifest; empty: not known
  Failure failure;
};

struct SourceStatus {
  uint32_t cores = 0;
  uint64_t ring_bytes = 0;  // of memory, all CPUs
  uint64_t lost_records = 0;
  uint64_t saves = 0;
};

struct SaveReport {
  uint64_t unanswered = 0;  // processes that could not be looked at in time
};

// Keeps the last seconds of trace in memory. Recording from when it is made.
class PtSource {
 public:
  virtual ~PtSource() = default;
  virtual bool has_pt() const = 0;
  // At most so many bytes go into a bundle.
  virtual uint64_t save_bytes_max() const = 0;
  // Stops recording on all CPUs first, calls `first_byte` before the first byte
  // is read, writes perf.data, images and manifest.pb to `bundle`, and records
  // again, whatever failed. From any threads, several at once; meanwhile
  // NoteProcess and status alone may be called otherwise.
  [[nodiscard]] virtual Result<SaveReport> Save(
      const SaveOrder& order, bundle::BundleWriter& bundle,
      const std::function<void()>& first_byte) = 0;
  // Called once for each Save with a process, while that is at work, from the
  // loop's thread. Begins to note what procfs tells about the process, which
  // may be gone soon and belongs to `user`. Does not wait; Save does. Returns a
  // descriptor that hangs up when everything is noted or will not be; none if
  // there is nothing to wait for.
  virtual Fd NoteProcess(int32_t process, uint32_t user) = 0;
  // To be called now and then: follows CPUs that come and go.
  [[nodiscard]] virtual Status FollowCpus() = 0;
  virtual SourceStatus status() const = 0;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_SOURCE_H_
