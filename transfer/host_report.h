#ifndef CLEW_TRANSFER_HOST_REPORT_H_
#define CLEW_TRANSFER_HOST_REPORT_H_

#include <cstdint>
#include <string>

namespace clew::pb {
class ReportRequest;
}  // namespace clew::pb

namespace clew::transfer {

// What clewd says about itself and its host: ReportRequest of
// proto/collector.proto explains each.
struct HostReport {
  std::string version{};
  std::string state{};
  std::string source{};
  std::string source_error{};
  std::string units_error{};
  std::string last_error{};
  int64_t last_error_at_s = 0;
  uint64_t uptime_s = 0;
  uint64_t spool_bundles = 0;
  uint64_t spool_bytes = 0;
  uint64_t spool_bytes_max = 0;
  uint64_t stuck = 0;
  uint64_t refused = 0;
  uint64_t saved = 0;
  uint64_t not_saved = 0;
  uint64_t uploaded = 0;
  uint64_t lost = 0;
};

void ToProto(const HostReport& report, pb::ReportRequest* out);
HostReport FromProto(const pb::ReportRequest& request);

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_HOST_REPORT_H_
