#include "tests/collector/web/served_site.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/check.h"
#include "common/file.h"

namespace clew::collector::web {

StoreAndCatalogue::StoreAndCatalogue() {
  auto opened = BundleStore::Open(
      PosixFileSystem(), StoreOptions(folder / "store", &store_now_s_));
  CLEW_CHECK(opened.has_value(), "{}", opened.error().message);
  store = std::move(*opened);
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

ServedSite::ServedSite(const std::function<void(FakeCatalogue&)>& fill,
                       const WebLimits& limits) {
  if (fill) {
    fill(catalogue);
  }
  WebOptions options;
  options.limits = limits;
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
