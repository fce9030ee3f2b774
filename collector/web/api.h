#ifndef CLEW_COLLECTOR_WEB_API_H_
#define CLEW_COLLECTOR_WEB_API_H_

#include <string>

#include "collector/catalogue/catalogue.h"
#include "collector/web/pages.h"

namespace clew::collector::web {

// The same as the pages, for programs. Times are seconds since 1970; bytes that
// are not UTF-8 are U+FFFD.

// {"total":n,"groups":[{"signature","title","bundles","hosts":[..],
//  "host_count","first_seen_s","last_seen_s","state","why","representative"}]}
std::string GroupsAsJson(const ListPage<GroupRow>& groups);
// {"total":n,"hosts":[{"host","seen_at_s","health", and the fields of
//  ReportRequest (proto/collector.proto)}]}, as `clew hosts --json`
std::string HostsAsJson(const ListPage<HostRow>& hosts);
// {"id","signature","host","unit","command","source","failure",
//  "recorded_at_s","received_at_s","size_bytes","sufficiency","state","grade",
//  "why","solve_seconds","files":[{"path","size_bytes"}],"backtraces":{..}}
std::string BundleAsJson(const BundleDetails& details);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_API_H_
