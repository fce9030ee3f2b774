#ifndef CLEW_COLLECTOR_SERVICE_METRICS_H_
#define CLEW_COLLECTOR_SERVICE_METRICS_H_

#include "collector/jobs/jobs.h"
#include "collector/notify/notifier.h"
#include "collector/service/service.h"
#include "collector/web/metrics.h"

namespace clew::collector {

// The figures of the service and of the jobs, for /metrics.
void AddServiceMetrics(const Service& service, web::MetricsWriter& writer);
void AddNotifierMetrics(const NotifierCounts& counts,
                        web::MetricsWriter& writer);
void AddJobMetrics(const JobCounts& counts, web::MetricsWriter& writer);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_METRICS_H_
