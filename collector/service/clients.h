#ifndef CLEW_COLLECTOR_SERVICE_CLIENTS_H_
#define CLEW_COLLECTOR_SERVICE_CLIENTS_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "collector/store/chunk_store.h"
#include "common/result.h"

namespace clew::collector {

// Refuses for the moment: the client tries again.
template <class... Args>
[[nodiscard]] std::unexpected<Error> TryLater(
    fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{ErrorCode::kSystem,
                               fmt::format(format, std::forward<Args>(args)...),
                               EAGAIN});
}

// What one host may cost the collector.
struct ClientLimits {
  size_t bundles_in_flight_max = 8;  // of a host: begun and not committed
  size_t chunks_in_flight_max = 16;  // of a host: received in part and kept
  size_t hosts_in_flight_max = 4096;
  uint64_t keep_s = 600;  // after it, what nobody asked for is forgotten
  // A bundle begun this long ago is dropped for another of its host.
  uint64_t give_way_s = 30;
};

// What hosts have begun and not finished, in memory only: after a restart a
// client begins again. Thread-safe.
class Clients {
 public:
  // `now_s` never goes back.
  Clients(const ClientLimits& limits, std::function<uint64_t()> now_s)
      : limits_(limits), now_s_(std::move(now_s)) {}

  // Lets the host send the bundle's chunks until Forget, or until nobody has
  // asked for them for keep_s. Fails with kSystem (EAGAIN) if too many of its
  // bundles, or too many hosts, are in flight.
  [[nodiscard]] Status Begin(const std::string& host, const FileList& list);
  // Returns the list that Begin was given; nullopt if the bundle was not begun
  // or has been forgotten.
  std::optional<FileList> ListInFlight(const std::string& host,
                                       const BundleId& id);
  void Forget(const std::string& host, const BundleId& id);

  // Returns the chunk as a bundle in flight of this host names it; nullopt if
  // none does.
  std::optional<ChunkRef> Wanted(const std::string& host, const ChunkId& chunk);

  // Returns an upload that Park was given; nullopt if there is none or another
  // call has taken it.
  std::optional<ChunkUpload> TakeParked(const std::string& host,
                                        const ChunkId& chunk);
  // Keeps what was received of a chunk, if the host has a bundle in flight.
  // Drops the host's oldest if there are more than chunks_in_flight_max.
  void Park(const std::string& host, ChunkUpload upload);
  // Returns how many bytes of the chunk are parked; 0 if it is not.
  uint64_t ParkedBytes(const std::string& host, const ChunkId& chunk) const;

  // Forgets what nobody asked for lately.
  void Expire();
  // For figures.
  size_t bundles_in_flight() const;
  size_t chunks_parked() const;

 private:
  struct Bundle {
    FileList list;
    std::map<ChunkId, uint64_t> chunk_bytes;
    uint64_t asked_s = 0;
  };
  struct Parked {
    ChunkUpload upload;
    uint64_t since_s = 0;
  };
  struct Host {
    std::map<BundleId, Bundle> bundles;
    std::list<Parked> parked;  // oldest first
  };

  // Makes room for one bundle more. Returns false if there is none.
  bool MakeRoom(Host& host, uint64_t now_s) const;
  void ExpireHost(Host& host, uint64_t now_s, std::list<Parked>& ended) const;

  const ClientLimits limits_;
  const std::function<uint64_t()> now_s_;
  mutable std::mutex mutex_;  // never held while an upload ends: that is I/O
  std::map<std::string, Host> hosts_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_CLIENTS_H_
