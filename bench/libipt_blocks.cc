#include "bench/libipt_blocks.h"

#include <intel-pt.h>

#include <memory>

namespace clew::decoder {
namespace {

using CachePtr =
    std::unique_ptr<pt_image_section_cache, decltype(&pt_iscache_free)>;
using ImagePtr = std::unique_ptr<pt_image, decltype(&pt_image_free)>;
using DecoderPtr =
    std::unique_ptr<pt_block_decoder, decltype(&pt_blk_free_decoder)>;

// What stays the same from the start.
Status MapCode(const PerfTrace& trace, pt_image_section_cache* cache,
               pt_image* image) {
  const SpaceId space =
      trace.spaces().At(trace.slices().front().process, TscTicks(0));
  const CodeMap code = trace.spaces().MapOf(space);
  for (const CodeMapping* of : code.initial()) {
    if (of->file.empty()) {
      continue;
    }
    const int id =
        pt_iscache_add_file(cache, of->file.c_str(), of->mapping.file_offset,
                            of->mapping.size_bytes, of->mapping.addr.as_int());
    if (id < 0 || pt_image_add_cached(image, cache, id, nullptr) < 0) {
      return CorruptInput("{}: libipt cannot map it", of->file);
    }
  }
  return {};
}

DecoderPtr MakeDecoder(const AuxPiece& piece, pt_image* image) {
  pt_config config;
  pt_config_init(&config);
  config.begin = const_cast<uint8_t*>(
      reinterpret_cast<const uint8_t*>(piece.bytes.data()));
  config.end = config.begin + piece.bytes.size();
  DecoderPtr decoder(pt_blk_alloc_decoder(&config), &pt_blk_free_decoder);
  pt_blk_set_image(decoder.get(), image);
  return decoder;
}

void CountPiece(const AuxPiece& piece, pt_image* image, StreamStats& stats) {
  const DecoderPtr decoder = MakeDecoder(piece, image);
  int status = pt_blk_sync_forward(decoder.get());
  while (status >= 0 && (status & pts_eos) == 0) {
    if ((status & pts_event_pending) != 0) {
      pt_event event;
      status = pt_blk_event(decoder.get(), &event, sizeof event);
      continue;
    }
    pt_block block;
    status = pt_blk_next(decoder.get(), &block, sizeof block);
    stats.blocks += status >= 0 && block.ninsn > 0 ? 1 : 0;
    stats.instructions += status >= 0 ? block.ninsn : 0;
  }
  stats.gaps += status < 0 && status != -pte_eos ? 1 : 0;
}

}  // namespace

Result<StreamStats> CountBlocksOfLibipt(const PerfTrace& trace) {
  const CachePtr cache(pt_iscache_alloc(nullptr), &pt_iscache_free);
  pt_iscache_set_limit(cache.get(), SectionCache::kDefaultLimitBytes);
  const ImagePtr image(pt_image_alloc(nullptr), &pt_image_free);
  CLEW_RETURN_IF_ERROR(MapCode(trace, cache.get(), image.get()));
  StreamStats stats;
  for (const CoreTrace& core : trace.cores()) {
    for (const AuxPiece& piece : core.pieces) {
      CountPiece(piece, image.get(), stats);
    }
  }
  return stats;
}

}  // namespace clew::decoder
