#include "transfer/host_report.h"

#include "proto/collector.pb.h"

namespace clew::transfer {

void ToProto(const HostReport& report, pb::ReportRequest* out) {
  out->set_version(report.version);
  out->set_state(report.state);
  out->set_source(report.source);
  out->set_source_error(report.source_error);
  out->set_units_error(report.units_error);
  out->set_uptime_s(report.uptime_s);
  out->set_spool_bundles(report.spool_bundles);
  out->set_spool_bytes(report.spool_bytes);
  out->set_spool_bytes_max(report.spool_bytes_max);
  out->set_stuck(report.stuck);
  out->set_refused(report.refused);
  out->set_saved(report.saved);
  out->set_not_saved(report.not_saved);
  out->set_uploaded(report.uploaded);
  out->set_lost(report.lost);
  out->set_last_error(report.last_error);
  out->set_last_error_at_s(report.last_error_at_s);
}

HostReport FromProto(const pb::ReportRequest& request) {
  return {.version = request.version(),
          .state = request.state(),
          .source = request.source(),
          .source_error = request.source_error(),
          .units_error = request.units_error(),
          .last_error = request.last_error(),
          .last_error_at_s = request.last_error_at_s(),
          .uptime_s = request.uptime_s(),
          .spool_bundles = request.spool_bundles(),
          .spool_bytes = request.spool_bytes(),
          .spool_bytes_max = request.spool_bytes_max(),
          .stuck = request.stuck(),
          .refused = request.refused(),
          .saved = request.saved(),
          .not_saved = request.not_saved(),
          .uploaded = request.uploaded(),
          .lost = request.lost()};
}

}  // namespace clew::transfer
