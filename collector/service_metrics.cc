#include "collector/service_metrics.h"

namespace clew::collector {

void AddServiceMetrics(const Service& service, web::MetricsWriter& writer) {
  const ServiceCounts& counts = service.counts();
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    writer.Counter(name, help, static_cast<double>(value));
  };
  counter("clew_uploads_begun_total", "Begin calls", counts.begins);
  counter("clew_uploads_committed_total", "Bundles that were stored",
          counts.commits);
  counter("clew_chunks_received_total", "Chunks that were acknowledged",
          counts.chunks);
  counter("clew_received_bytes_total", "Bytes of chunks that came",
          counts.bytes_received);
  counter("clew_sent_bytes_total", "Bytes of bundles that were fetched",
          counts.bytes_sent);
  counter("clew_refusals_total", "Calls that were refused for good",
          counts.refusals);
  writer.Gauge("clew_bundles_in_flight", "Begun and not committed",
               static_cast<double>(service.clients().bundles_in_flight()));
  writer.Gauge("clew_chunks_parked", "Half of them came",
               static_cast<double>(service.clients().chunks_parked()));
}

void AddNotifierMetrics(const NotifierCounts& counts,
                        web::MetricsWriter& writer) {
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    writer.Counter(name, help, static_cast<double>(value));
  };
  counter("clew_notifications_sent_total", "That the webhook accepted",
          counts.sent);
  counter("clew_notification_failures_total", "Attempts that failed",
          counts.failed);
  counter("clew_notifications_given_up_total", "After the last attempt",
          counts.given_up);
  counter("clew_notifications_dropped_total",
          "The queue was full; since the catalogue was made", counts.dropped);
  writer.Gauge("clew_notifications_waiting", "To be sent",
               static_cast<double>(counts.waiting));
}

void AddJobMetrics(const JobCounts& counts, web::MetricsWriter& writer) {
  const auto counter = [&](const char* name, const char* help, double value) {
    writer.Counter(name, help, value);
  };
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  counter("clew_analyses_total", "Bundles that were analysed",
          number(counts.analyses));
  counter("clew_analyses_failed_total", "Those without backtraces",
          number(counts.analyses_failed));
  counter("clew_solves_total", "Runs of clew solve", number(counts.solves));
  counter("clew_witnesses_total", "Those that found a witness",
          number(counts.witnesses));
  counter("clew_contradictions_total", "Those with which no order agrees",
          number(counts.contradictions));
  counter("clew_model_differences_total",
          "Those from which clew's model of kernel or CPU differs",
          number(counts.model_differences));
  counter("clew_unsolved_total", "Those without an answer",
          number(counts.unsolved));
  counter("clew_job_limits_total", "Child processes that a limit ended",
          number(counts.limits_hit));
  counter("clew_jobs_put_off_total", "Jobs that the system made fail",
          number(counts.put_off));
  counter("clew_job_cpu_seconds_total", "Of child processes",
          counts.child_cpu_seconds);
  writer.Gauge("clew_jobs_running", "Child processes now",
               number(counts.running));
}

}  // namespace clew::collector
