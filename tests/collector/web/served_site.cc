#include "tests/collector/web/served_site.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/check.h"
#include "common/os/file.h"
#include "tests/support/wait_until.h"

namespace clew::collector::web {

StoreAndCatalogue::StoreAndCatalogue() {
  auto opened = BundleStore::Open(
      PosixFileSystem(), StoreOptions(folder / "store", &store_now_s_));
  CLEW_CHECK(opened.has_value(), "{}", opened.error().message);
  store = std::move(*opened);
  const std::string path = folder / "hosts.sqlite";
  CLEW_CHECK(Catalogue::Open(path).has_value(), "no catalogue for hosts");
  auto table = HostTable::Open(path);
  CLEW_CHECK(table.has_value(), "{}", table.error().message);
  hosts = std::move(*table);
}

void StoreAndCatalogue::AddReports(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    transfer::HostReport report{
        .version = "0.1.0", .state = "recording", .source = "perf"};
    report.spool_bundles = i % 4;
    report.spool_bytes = (i % 37) << 26;
    report.spool_bytes_max = uint64_t{10} << 30;
    report.saved = 3 * i;
    report.not_saved = i % 3;
    if (i % 17 == 3) {
      report.stuck = 2;
    }
    if (i % 29 == 5) {
      report.state = "off";
      report.source_error =
          "no intel_pt event source: this CPU or virtual machine does not "
          "offer Intel PT";
    }
    if (i % 11 == 2) {
      report.last_error = "upload-failed: collector.example:7447: connect";
      report.last_error_at_s = kNow_s - 7200;
    }
    const int64_t age_s = i % 41 == 7 ? 3 * kSilentAfter_s : 60 + i % 300;
    const Status put =
        hosts->Put(fmt::format("web-{:04}.example", i), report, kNow_s - age_s);
    CLEW_CHECK(put.has_value(), "{}", put.error().message);
  }
}

BundleId StoreAndCatalogue::AddStored() {
  const Sample sample = SmallSample("perf", "image");
  const Status sent = SendBundle(*store, sample);
  CLEW_CHECK(sent.has_value(), "{}", sent.error().message);
  BundleRow row = SampleBundle(0);
  row.id = sample.list.id();
  GroupRow group = SampleGroup(0);
  group.representative = row.id;
  catalogue.analyses[row.id] = {.signature = row.signature,
                                .title = group.title,
                                .backtraces = SampleBacktraces()};
  catalogue.bundles.push_back(row);
  catalogue.groups.push_back(group);
  return row.id;
}

WebLimits PatientLimits() {
  WebLimits limits;
  limits.head_time_max = test::kNeverInATest;
  limits.idle_time_max = test::kNeverInATest;
  limits.answer_time_max = test::kNeverInATest;
  return limits;
}

ServedSite::ServedSite(const std::function<void(FakeCatalogue&)>& fill,
                       const WebLimits& limits) {
  if (fill) {
    fill(catalogue);
  }
  WebOptions options;
  options.limits = limits;
  options.hosts = hosts.get();
  options.now_s = [] { return kNow_s; };
  options.client_options = "--collector collector.example:7447 ";
  auto server =
      Server::Start(options, *store, catalogue, [](MetricsWriter& metrics) {
        metrics.Counter("clew_test_total", "Of the test.", 3);
      });
  CLEW_CHECK(server.has_value(), "{}", server.error().message);
  server_ = std::move(*server);
}

std::string ServedSite::Url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", port(), path);
}

}  // namespace clew::collector::web
