#include "collector/service/store_reader.h"

#include <utility>

namespace clew::collector {

Result<Reconciled> ReadStore(BundleStore& store, Catalogue& catalogue,
                             int64_t now_s,
                             const std::function<bool()>& go_on) {
  // What is removed goes by what the catalogue says.
  CLEW_RETURN_IF_ERROR(catalogue.CheckPages(go_on));
  CLEW_RETURN_IF_ERROR(store.ReadAll(go_on));
  CLEW_ASSIGN_OR_RETURN(done, Reconcile(store, catalogue, now_s, go_on));
  store.AllowRemovals();
  return done;
}

StoreReader::StoreReader(Options options, BundleStore& store,
                         Catalogue& catalogue)
    : options_(std::move(options)),
      store_(store),
      catalogue_(catalogue),
      thread_([this] { Run(); }) {}

StoreReader::~StoreReader() { Stop(); }

void StoreReader::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_asked_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

bool StoreReader::IsStopped() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

bool StoreReader::Rest() {
  std::unique_lock lock(mutex_);
  return !stop_asked_.wait_for(lock, options_.retry, [this] { return stop_; });
}

void StoreReader::Run() {
  do {
    const auto read = ReadStore(store_, catalogue_, options_.now_s(),
                                [this] { return !IsStopped(); });
    if (IsStopped()) {
      return;
    }
    options_.report(read);
    if (read) {
      return;
    }
  } while (Rest());
}

}  // namespace clew::collector
