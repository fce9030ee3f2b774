#include "collector/web/api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "collector/web/backtraces.h"
#include "collector/web/page_frame.h"

namespace clew::collector::web {
namespace {

using nlohmann::json;

std::string Dump(const json& value) {
  constexpr int kIndent = -1;  // one line
  return value.dump(kIndent, ' ', /*ensure_ascii=*/false,
                    json::error_handler_t::replace) +
         "\n";
}

json GroupAsJson(const GroupRow& group) {
  json object = {{"signature", group.signature},
                 {"title", group.title},
                 {"bundles", group.bundles},
                 {"hosts", group.hosts},
                 {"host_count", group.host_count},
                 {"first_seen_s", group.first_seen_s},
                 {"last_seen_s", group.last_seen_s},
                 {"state", StateName(group.state)},
                 {"why", group.why},
                 {"representative", nullptr},
                 {"program", group.program},
                 {"first_version", group.first_version},
                 {"last_version", group.last_version},
                 {"resolved", group.mark.resolved},
                 {"resolved_in", group.mark.resolved_in},
                 {"reopened_in", group.mark.reopened_in},
                 {"note", group.mark.note}};
  if (group.representative) {
    object["representative"] = group.representative->hex();
  }
  return object;
}

json RowAsJson(const BundleRow& row) {
  json object = {{"id", row.id.hex()},
                 {"signature", row.signature},
                 {"host", row.host},
                 {"unit", row.unit},
                 {"command", row.command},
                 {"source", row.source},
                 {"program", row.program},
                 {"version", row.version},
                 {"failure", row.failure},
                 {"recorded_at_s", row.recorded_at_s},
                 {"received_at_s", row.received_at_s},
                 {"size_bytes", row.size_bytes},
                 {"sufficiency", nullptr},
                 {"state", StateName(row.state)},
                 {"grade", row.grade},
                 {"why", row.why},
                 {"solve_seconds", row.solve_seconds}};
  if (row.sufficiency) {
    object["sufficiency"] = *row.sufficiency;
  }
  return object;
}

json HostAsJson(const HostRow& host) {
  return {{"host", host.host},
          {"seen_at_s", host.seen_s},
          {"health", ToString(host.health)},
          {"version", host.version},
          {"state", host.state},
          {"source", host.source},
          {"source_error", host.source_error},
          {"units_error", host.units_error},
          {"last_error", host.last_error},
          {"last_error_at_s", host.last_error_at_s},
          {"uptime_s", host.uptime_s},
          {"spool_bundles", host.spool_bundles},
          {"spool_bytes", host.spool_bytes},
          {"spool_bytes_max", host.spool_bytes_max},
          {"stuck", host.stuck},
          {"refused", host.refused},
          {"saved", host.saved},
          {"not_saved", host.not_saved},
          {"uploaded", host.uploaded},
          {"lost", host.lost}};
}

json FrameAsJson(const Frame& frame) {
  return {{"function", frame.function}, {"module", frame.module},
          {"build_id", frame.build_id}, {"offset", frame.offset},
          {"file", frame.file},         {"line", frame.line}};
}

json BacktracesAsJson(const Backtraces& backtraces) {
  json threads = json::array();
  for (const ThreadTrace& thread : backtraces.threads) {
    json frames = json::array();
    for (const Frame& frame : thread.frames) {
      frames.push_back(FrameAsJson(frame));
    }
    threads.push_back({{"thread", thread.thread},
                       {"failed", thread.failed},
                       {"frames", std::move(frames)},
                       {"frames_left_out", thread.frames_left_out},
                       {"cut_off", thread.cut_off}});
  }
  return {{"threads", std::move(threads)},
          {"threads_left_out", backtraces.threads_left_out},
          {"notes", backtraces.notes}};
}

}  // namespace

std::string GroupsAsJson(const ListPage<GroupRow>& groups) {
  json rows = json::array();
  for (const GroupRow& group : groups.rows) {
    rows.push_back(GroupAsJson(group));
  }
  return Dump({{"total", groups.total}, {"groups", std::move(rows)}});
}

std::string HostsAsJson(const ListPage<HostRow>& hosts) {
  json rows = json::array();
  for (const HostRow& host : hosts.rows) {
    rows.push_back(HostAsJson(host));
  }
  return Dump({{"total", hosts.total}, {"hosts", std::move(rows)}});
}

std::string BundleAsJson(const BundleDetails& details) {
  json object = RowAsJson(details.row);
  object["damaged"] = details.damaged;
  object["files"] = nullptr;
  if (details.files) {
    json files = json::array();
    for (const FileEntry& file : details.files->files()) {
      files.push_back({{"path", file.path}, {"size_bytes", file.size_bytes}});
    }
    object["files"] = std::move(files);
  }
  object["backtraces"] = nullptr;
  if (details.analysis) {
    object["backtraces"] =
        BacktracesAsJson(ParseBacktraces(details.analysis->backtraces));
  }
  return Dump(object);
}

}  // namespace clew::collector::web
