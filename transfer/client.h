#ifndef CLEW_TRANSFER_CLIENT_H_
#define CLEW_TRANSFER_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/file.h"
#include "common/progress.h"
#include "common/result.h"
#include "transfer/file_list.h"
#include "transfer/host_report.h"
#include "transfer/remote_groups.h"
#include "transfer/sha256.h"

namespace clew::transfer {

// How to reach a collector, and as whom.
struct ClientOptions {
  std::string address;     // host:port
  std::string ca_file;     // PEM; empty: the system's certificate authorities
  std::string cert_file;   // PEM chain that says who we are; empty: none
  std::string key_file;    // PEM, of the certificate
  std::string token_file;  // its first line is our token; empty: none
  // No TLS. Refused unless the address is 127.0.0.1, [::1] or localhost.
  bool insecure_loopback = false;

  std::string program = "clew";  // for the collector's log

  // An attempt that brought no chunk further counts; so many in a row end the
  // work. Between them pause_ms_first, doubled each time up to pause_ms_max.
  uint32_t attempts_max = 8;
  uint64_t pause_ms_first = 200;
  uint64_t pause_ms_max = 15'000;
  uint64_t call_ms_max = 60'000;  // of calls but those that send chunks
};

// One line of a list.
struct RemoteBundle {
  BundleId id;
  std::string host;
  std::string unit;
  std::string command;
  std::string source;
  std::string failure;
  int64_t recorded_at_s = 0;  // 0: not known
  int64_t received_at_s = 0;
  uint64_t size_bytes = 0;
  std::optional<uint32_t> sufficiency;  // 0..100
  std::string state;
  bool damaged = false;   // the collector lost a part of it
  std::string signature;  // empty: not analysed yet
  std::string grade;
  std::string why;
};

struct RemoteQuery {
  uint64_t offset = 0;
  uint32_t limit = 50;    // 1..1000
  std::string host;       // empty: all
  std::string signature;  // empty: all
};

template <class Row>
struct RemotePage {
  std::vector<Row> rows;
  uint64_t total = 0;  // of all that match
};

struct RemoteStatus {
  std::string collector;  // "clew-collector 0.1.0"
  std::string host;       // as whom it knows us
  uint64_t bytes_left_today = 0;
  uint64_t uptime_s = 0;
  uint64_t bundles = 0;
  uint64_t groups = 0;
  uint64_t hosts = 0;
  uint64_t bundle_bytes = 0;  // shared chunks counted in each bundle
  uint64_t disk_bytes = 0;
  uint64_t disk_bytes_max = 0;
};

// What the collector found in a bundle that it read once more.
struct RemoteCheck {
  BundleId id;
  uint64_t bytes_read = 0;
  std::vector<std::string> faults;  // a line each; empty: it is whole
};

// What the collector did with a report of a host.
enum class ReportAnswer {
  kTaken,
  kUnknownCall,  // it is of an earlier version, which takes no reports
};

// What an upload cost.
struct UploadStats {
  uint64_t bytes = 0;       // of the bundle
  uint64_t bytes_sent = 0;  // of chunks that were acknowledged
  uint64_t attempts = 0;    // more than 1: something broke
};

// Talks to one collector. A broken connection or a collector that restarts is
// waited for and the work goes on where it was; a refusal ends it. Errors:
//
//   kSystem           not reached, or broken too often; try again later.
//                     Error::sys_errno is ECANCELED after Cancel.
//   kUnsupported      refused: versions, token or certificate
//   kLimit            refused: quota, size, disk; what to do is in the message
//   kInvalidArgument  refused: the request makes no sense
//   kCorruptInput     refused: bytes break the format; or what was received
//                     has not the digest that it must have
//
// One call at a time; Cancel from any thread.
class Client {
 public:
  // Reads the certificates and the token; the first call connects. Fails with
  // kInvalidArgument if the options contradict each other, and with kSystem if
  // a file cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<Client>> Create(
      const ClientOptions& options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  // Sends what the collector lacks of the bundle. After success the bundle is
  // on the collector's stable storage. `progress` and `stats` may be nullptr;
  // progress is in bytes, called from this thread. REQUIRES: nobody writes to
  // `folder`.
  [[nodiscard]] Result<BundleId> Upload(const std::string& folder,
                                        ProgressSink* progress,
                                        UploadStats* stats = nullptr);
  // Does the same with a list of `folder` that the caller has made. Making it
  // reads the whole bundle, so the caller can show how far that is.
  [[nodiscard]] Status Upload(const std::string& folder, const FileList& list,
                              ProgressSink* progress,
                              UploadStats* stats = nullptr);
  // Returns the bundles that match, latest first.
  [[nodiscard]] Result<RemotePage<RemoteBundle>> List(const RemoteQuery& query);
  // Fetches the bundle whose id begins with `prefix` (4 to 64 hexadecimal
  // digits, one bundle) as the folder `out`: writes `out`.partial, checks every
  // digest, syncs and renames. After a failure `out` is not there, or it is
  // whole and only its name may not be durable. Fails with kInvalidArgument if
  // no bundle or several have this prefix, or `out` exists.
  [[nodiscard]] Result<BundleId> Get(std::string_view prefix,
                                     const std::string& out, FileSystem& files,
                                     ProgressSink* progress);
  [[nodiscard]] Result<RemoteStatus> GetStatus();
  // Removes the bundle whose id begins with `prefix` from the collector. Fails
  // with kInvalidArgument if no bundle or several have this prefix, and with
  // kUnsupported if the collector does not let us.
  [[nodiscard]] Result<BundleId> Delete(std::string_view prefix);
  // Has the collector read every byte of the bundle. Fails as Delete does.
  [[nodiscard]] Result<RemoteCheck> Check(std::string_view prefix);

  // ListGroups returns groups, the one seen last first; GetGroup returns one
  // with its versions. `prefix` begins its signature. Both fail with
  // kUnsupported if the collector does not show us what comes from all hosts,
  // GetGroup also with kInvalidArgument if no group or several have this
  // prefix.
  [[nodiscard]] Result<RemotePage<RemoteGroup>> ListGroups(
      const RemoteGroupQuery& query);
  [[nodiscard]] Result<RemoteGroupDetails> GetGroup(std::string_view prefix);
  // Changes a group and returns it as it is afterwards. Setting what is set
  // already changes nothing. Fails as GetGroup does, and with kInvalidArgument
  // if a text is too long or has more than one line.
  [[nodiscard]] Result<RemoteGroup> ChangeGroup(
      std::string_view prefix, const RemoteGroupChange& change);
  // Returns hosts, those that want attention first. Fails with kUnsupported as
  // ListGroups does.
  [[nodiscard]] Result<RemotePage<RemoteHost>> ListHosts(
      const RemoteHostQuery& query);

  // Tells the collector how this host's daemon is doing.
  [[nodiscard]] Result<ReportAnswer> Report(const HostReport& report);

  // Makes the running call and every later one fail.
  void Cancel();

  class Connection;  // of the implementation

 private:
  explicit Client(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_CLIENT_H_
