// Reports of hosts about themselves: Service::Report and ListHosts.

#include <utility>

#include "collector/catalogue/text.h"
#include "collector/service/service.h"
#include "proto/collector.pb.h"

namespace clew::collector {
namespace {

constexpr uint32_t kHostRowsMax = 500;

Result<std::optional<HostHealth>> HealthOf(const std::string& name_untrusted) {
  const auto health = HealthNamed(name_untrusted);
  if (!health && !name_untrusted.empty()) {
    return InvalidArgument(
        "health is {:?}, wanted \"fine\", \"trouble\" or \"silent\"",
        CleanLine(name_untrusted, kWordBytesMax));
  }
  return health;
}

void FillHost(const HostRow& row, pb::HostStatus* out) {
  out->set_host(row.host);
  out->set_seen_at_s(row.seen_s);
  out->set_health(std::string(ToString(row.health)));
  transfer::ToProto(row, out->mutable_report());
}

}  // namespace

Result<pb::ReportReply> Service::Report(const Caller& caller,
                                        const pb::ReportRequest& request) {
  if (options_.hosts == nullptr) {
    return pb::ReportReply();
  }
  CLEW_RETURN_IF_ERROR(reports_.Take(caller.host, options_.steady_s()));
  CLEW_RETURN_IF_ERROR(options_.hosts->Put(
      caller.host, transfer::FromProto(request), options_.wall_s()));
  return pb::ReportReply();
}

Result<pb::ListHostsReply> Service::ListHosts(
    const Caller& caller, const pb::ListHostsRequest& request) {
  CLEW_RETURN_IF_ERROR(MustReadAll(caller, "hosts"));
  CLEW_ASSIGN_OR_RETURN(limit, RowsOfPage(request.limit(), kHostRowsMax));
  CLEW_ASSIGN_OR_RETURN(health, HealthOf(request.health()));
  pb::ListHostsReply reply;
  if (options_.hosts == nullptr) {
    return reply;
  }
  CLEW_ASSIGN_OR_RETURN(page, options_.hosts->Hosts({.offset = request.offset(),
                                                     .limit = limit,
                                                     .text = request.text(),
                                                     .health = health},
                                                    options_.wall_s()));
  for (const HostRow& row : page.rows) {
    FillHost(row, reply.add_hosts());
  }
  reply.set_total(page.total);
  return reply;
}

}  // namespace clew::collector
