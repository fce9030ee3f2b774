#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collector/web/format.h"
#include "collector/web/http.h"
#include "collector/web/pages.h"
#include "collector/web/tables.h"

// The page of hosts: what they said of themselves, and what they sent.

namespace clew::collector::web {
namespace {

constexpr Column kHost{"Host", "host"};
constexpr Column kStatus{"Status", "complaints"};
constexpr Column kSeen{"Last seen", "time"};
constexpr Column kTraceSource{"Source", "words"};
constexpr Column kVersion{"Version", "words"};
constexpr Column kSpool{"Spool", "words"};
constexpr Column kSaved{"Saved", "number"};
constexpr Column kNotSaved{"Not saved", "number"};

std::string PathOf(const HostQuery& query) {
  std::string path = "/hosts?";
  if (!query.text.empty()) {
    path += "q=" + PercentEncode(query.text) + "&";
  }
  if (query.health) {
    path += fmt::format("health={}&", ToString(*query.health));
  }
  return path;
}

void WriteHealth(HtmlWriter& html, HostHealth health) {
  const std::string name(ToString(health));
  html.Element("span", {{"class", "state " + name}}, name);
}

// How many hosts do how, each a link to those.
void WriteHealths(HtmlWriter& html, const HostReports& reports) {
  html.In("ul", {{"class", "states"}, {"aria-label", "Hosts by status"}}, [&] {
    for (const auto health :
         {HostHealth::kSilent, HostHealth::kTrouble, HostHealth::kFine}) {
      const bool chosen = health == reports.query.health;
      html.In("li", {}, [&] {
        html.In(
            "a",
            {{"href", fmt::format("/hosts?health={}", ToString(health))},
             {"class", chosen ? "chosen" : ""}},
            [&] {
              WriteHealth(html, health);
              html.Text(
                  " " +
                  FormatCount(
                      reports.counts.by_health[static_cast<size_t>(health)]));
            });
      });
    }
  });
}

// What wants attention, a line each.
std::vector<std::string> Complaints(const HostRow& host, int64_t now_s) {
  std::vector<std::string> lines;
  if (host.health == HostHealth::kSilent) {
    lines.emplace_back("said nothing for a day");
  }
  for (const std::string* error : {&host.source_error, &host.units_error}) {
    if (!error->empty()) {
      lines.push_back(*error);
    }
  }
  if (host.stuck > 0) {
    lines.push_back(Plural(host.stuck, "bundle is", "bundles are") +
                    " stuck: clew daemon status on the host says why");
  }
  if (host.lost > 0) {
    lines.push_back(Plural(host.lost, "bundle was", "bundles were") +
                    " removed unsent for want of room");
  }
  const bool told = host.last_error == host.source_error ||
                    host.last_error == host.units_error;
  if (!host.last_error.empty() && !told) {
    lines.push_back(fmt::format("last error, {}: {}",
                                FormatAge(host.last_error_at_s, now_s),
                                host.last_error));
  }
  return lines;
}

void WriteSpool(HtmlWriter& html, const HostRow& host) {
  html.Text(FormatCount(host.spool_bundles) + " to send");
  html.Element("span", {{"class", "why"}},
               fmt::format("{} of {}", FormatBytes(host.spool_bytes),
                           FormatBytes(host.spool_bytes_max)));
}

void WriteReportRow(HtmlWriter& html, const PageContext& context,
                    const HostRow& host) {
  WriteCell(html, kHost, [&] {
    html.In("a",
            {{"class", "name"},
             {"href", "/bundles?host=" + PercentEncode(host.host)}},
            [&] { html.Foreign(host.host); });
  });
  WriteCell(html, kStatus, [&] {
    WriteHealth(html, host.health);
    for (const std::string& line : Complaints(host, context.now_s)) {
      html.In("span", {{"class", "why"}}, [&] { html.Foreign(line); });
    }
  });
  WriteCell(html, kSeen, [&] { WriteTime(html, host.seen_s, context.now_s); });
  WriteCell(html, kTraceSource, [&] {
    html.Foreign(fmt::format("{}, {}", host.source, host.state));
  });
  WriteCell(html, kVersion, [&] { html.Foreign(host.version); });
  WriteCell(html, kSpool, [&] { WriteSpool(html, host); });
  WriteCell(html, kSaved, [&] { html.Text(FormatCount(host.saved)); });
  WriteCell(html, kNotSaved, [&] { html.Text(FormatCount(host.not_saved)); });
}

void WriteReports(HtmlWriter& html, const PageContext& context,
                  const HostReports& reports) {
  WriteTable(html, "Hosts",
             {kHost, kStatus, kSeen, kTraceSource, kVersion, kSpool, kSaved,
              kNotSaved},
             [&] {
               for (const HostRow& host : reports.page.rows) {
                 html.In("tr", {{"role", "row"}},
                         [&] { WriteReportRow(html, context, host); });
               }
             });
  WritePaging(html, reports.query.offset, reports.page.rows.size(),
              reports.page.total, PathOf(reports.query));
}

void WriteUseRow(HtmlWriter& html, const PageContext& context,
                 const std::string& name, const HostUse& host) {
  WriteCell(html, {"Host", "failure"}, [&] {
    html.In(
        "a",
        {{"class", "name"}, {"href", "/bundles?host=" + PercentEncode(name)}},
        [&] { html.Foreign(name.empty() ? "no name" : name); });
  });
  WriteCell(html, {"Bundles", "number"},
            [&] { html.Text(FormatCount(host.bundles)); });
  WriteCell(html, {"Witnesses", "number"},
            [&] { html.Text(FormatCount(host.witnesses)); });
  WriteCell(html, {"Size", "number"},
            [&] { html.Text(FormatBytes(host.bytes)); });
  WriteCell(html, {"First seen", "time"},
            [&] { WriteTime(html, host.first_seen_s, context.now_s); });
  WriteCell(html, {"Last seen", "time"},
            [&] { WriteTime(html, host.last_seen_s, context.now_s); });
}

void WriteUseTable(HtmlWriter& html, const PageContext& context,
                   const HostUses& uses) {
  WriteTable(html, "Bundles by host",
             {{"Host", "failure"},
              {"Bundles", "number"},
              {"Witnesses", "number"},
              {"Size", "number"},
              {"First seen", "time"},
              {"Last seen", "time"}},
             [&] {
               for (const auto& [name, host] : uses.hosts) {
                 html.In("tr", {{"role", "row"}},
                         [&] { WriteUseRow(html, context, name, host); });
               }
             });
}

void WriteUses(HtmlWriter& html, const PageContext& context,
               const HostUses& uses) {
  html.Element("h2", "Bundles by host");
  if (uses.bundles_read < uses.bundles_total) {
    html.Element("p", {{"class", "summary"}},
                 fmt::format("Of the latest {} of {} bundles.",
                             FormatCount(uses.bundles_read),
                             FormatCount(uses.bundles_total)));
  }
  WriteUseTable(html, context, uses);
}

bool IsFiltered(const HostQuery& query) {
  return query.offset > 0 || !query.text.empty() || query.health;
}

uint64_t Total(const HostCounts& counts) {
  uint64_t total = 0;
  for (const uint64_t count : counts.by_health) {
    total += count;
  }
  return total;
}

}  // namespace

void HostUses::Add(const BundleRow& bundle) {
  ++bundles_read;
  HostUse& host = hosts[bundle.host];
  ++host.bundles;
  host.bytes += bundle.size_bytes;
  host.witnesses += bundle.state == BundleState::kWitness ? 1 : 0;
  const int64_t seen_s = bundle.recorded_at_s;
  if (seen_s == 0) {
    return;
  }
  host.first_seen_s =
      host.first_seen_s == 0 ? seen_s : std::min(host.first_seen_s, seen_s);
  host.last_seen_s = std::max(host.last_seen_s, seen_s);
}

std::string HostsPage(const PageContext& context, const HostReports& reports,
                      const HostUses& uses) {
  return WritePage("Hosts", Section::kHosts, [&](HtmlWriter& html) {
    html.In("div", {{"class", "title"}}, [&] {
      html.Element("h1", "Hosts");
      WriteSearch(html, {.path = "/hosts",
                         .text = reports.query.text,
                         .placeholder = "host",
                         .all = "all hosts"});
    });
    const bool filtered = IsFiltered(reports.query);
    if (Total(reports.counts) > 0) {
      WriteHealths(html, reports);
    } else if (!uses.hosts.empty()) {
      html.Element("p", {{"class", "summary"}},
                   "No host says how it does; clewd of this version does so "
                   "every few minutes.");
    }
    if (!reports.page.rows.empty()) {
      WriteReports(html, context, reports);
    } else if (filtered) {
      WriteEmpty(html, "No host matches, or none on this page.", [&] {
        html.Element("a", {{"href", "/hosts"}}, "Show all hosts");
      });
    }
    if (!filtered && !uses.hosts.empty()) {
      WriteUses(html, context, uses);
    } else if (!filtered && reports.page.rows.empty()) {
      WriteEmpty(html, "No host has sent a bundle yet.",
                 [&] { WriteUploadAdvice(html, context); });
    }
  });
}

}  // namespace clew::collector::web
