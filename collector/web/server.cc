#include "collector/web/server.h"

#include <chrono>
#include <utility>

#include "collector/web/listener.h"
#include "collector/web/site.h"

namespace clew::collector::web {
namespace {

int64_t SystemNow_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct Server::Parts {
  Parts(Site::Options options, const BundleStore& store,
        const Catalogue& catalogue)
      : site(std::move(options), store, catalogue) {}
  Site site;
  std::unique_ptr<Listener> listener;  // last: it calls the site
};

Result<std::unique_ptr<Server>> Server::Start(
    const WebOptions& options, const BundleStore& store,
    const Catalogue& catalogue, std::function<void(MetricsWriter&)> more) {
  auto parts = std::make_unique<Parts>(
      Site::Options{.host_names = options.host_names,
                    .client_options = options.client_options,
                    .store_limit_bytes = options.store_limit_bytes,
                    .now_s = options.now_s ? options.now_s : SystemNow_s,
                    .more = std::move(more),
                    .hosts = options.hosts},
      store, catalogue);
  CLEW_ASSIGN_OR_RETURN(
      listener, Listener::Start({.address = options.address,
                                 .port = options.port,
                                 .threads = options.threads,
                                 .limits = options.limits},
                                [site = &parts->site](const ParsedHead& head) {
                                  return site->Answer(head);
                                }));
  parts->listener = std::move(listener);
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Server::~Server() = default;
uint16_t Server::port() const { return parts_->listener->port(); }
void Server::Stop() { parts_->listener->Stop(); }

}  // namespace clew::collector::web
