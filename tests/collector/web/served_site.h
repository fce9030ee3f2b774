#ifndef CLEW_TESTS_COLLECTOR_WEB_SERVED_SITE_H_
#define CLEW_TESTS_COLLECTOR_WEB_SERVED_SITE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "collector/store/bundle_store.h"
#include "collector/web/server.h"
#include "tests/collector/samples.h"
#include "tests/collector/web/fake_catalogue.h"

namespace clew::collector::web {

// A store in a folder of its own, with a catalogue that a test fills.
class StoreAndCatalogue {
 public:
  StoreAndCatalogue();
  // Puts a bundle of some files in the store, and a solved row with backtraces
  // in the catalogue.
  BundleId AddStored();
  // Reports of `count` hosts: silent ones, some in trouble, most fine.
  void AddReports(size_t count);

  TempFolder folder;
  FakeCatalogue catalogue;
  std::unique_ptr<BundleStore> store;
  std::unique_ptr<HostTable> hosts;  // empty

 private:
  uint64_t store_now_s_ = 0;
};

// Limits of time that no client of a test reaches, however slow it is.
WebLimits PatientLimits();

// That behind a server on a free port of the loopback.
class ServedSite : public StoreAndCatalogue {
 public:
  explicit ServedSite(const std::function<void(FakeCatalogue&)>& fill = {},
                      const WebLimits& limits = PatientLimits());

  std::string Url(const std::string& path) const;
  uint16_t port() const { return server_->port(); }
  Server& server() { return *server_; }

 private:
  std::unique_ptr<Server> server_;
};

}  // namespace clew::collector::web

#endif  // CLEW_TESTS_COLLECTOR_WEB_SERVED_SITE_H_
