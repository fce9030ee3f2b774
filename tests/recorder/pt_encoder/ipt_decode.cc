#include "tests/recorder/pt_encoder/ipt_decode.h"

#include <fmt/format.h>
#include <intel-pt.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "recorder/pt_encoder/packets.h"

namespace clew::recorder {
namespace {

int ReadCode(uint8_t* buffer, size_t size, const pt_asid*, uint64_t ip,
             void* context) {
  for (const CodeRegion& region : *static_cast<const CodeImage*>(context)) {
    if (ip >= region.addr && ip - region.addr < region.bytes.size()) {
      const size_t offset = ip - region.addr;
      const size_t count = std::min(size, region.bytes.size() - offset);
      std::memcpy(buffer, region.bytes.data() + offset, count);
      return static_cast<int>(count);
    }
  }
  return -pte_nomap;
}

pt_config ConfigFor(std::span<const uint8_t> pt, const EncoderConfig& config) {
  pt_config result;
  pt_config_init(&result);
  result.begin = const_cast<uint8_t*>(pt.data());
  result.end = result.begin + pt.size();
  result.mtc_freq = static_cast<uint8_t>(config.mtc_period);
  result.nom_freq = static_cast<uint8_t>(config.tsc_bus_ratio);
  result.cpuid_0x15_eax = config.tsc_ctc_denominator;
  result.cpuid_0x15_ebx = config.tsc_ctc_numerator;
  return result;
}

struct ImageDeleter {
  void operator()(pt_image* image) const { pt_image_free(image); }
};
using ImagePtr = std::unique_ptr<pt_image, ImageDeleter>;

ImagePtr MakeImage(const CodeImage& image) {
  ImagePtr result(pt_image_alloc("test"));
  pt_image_set_callback(result.get(), ReadCode, const_cast<CodeImage*>(&image));
  return result;
}

std::string Describe(int status, uint64_t offset, size_t insns) {
  return fmt::format("{} at offset {:#x} after {} instructions",
                     pt_errstr(pt_errcode(status)), offset, insns);
}

struct InsnDeleter {
  void operator()(pt_insn_decoder* decoder) const {
    pt_insn_free_decoder(decoder);
  }
};
struct BlockDeleter {
  void operator()(pt_block_decoder* decoder) const {
    pt_blk_free_decoder(decoder);
  }
};

int DrainEvents(pt_insn_decoder* decoder, int status, IptRun& run) {
  while (status >= 0 && (status & pts_event_pending) != 0) {
    pt_event event;
    status = pt_insn_event(decoder, &event, sizeof event);
    if (status >= 0 && event.type == ptev_overflow) {
      run.overflows.push_back(run.ips.size());
    }
  }
  return status;
}

int DrainEvents(pt_block_decoder* decoder, int status, IptRun& run) {
  while (status >= 0 && (status & pts_event_pending) != 0) {
    pt_event event;
    status = pt_blk_event(decoder, &event, sizeof event);
    if (status >= 0 && event.type == ptev_overflow) {
      run.overflows.push_back(run.ips.size());
    }
  }
  return status;
}

const CodeRegion* RegionOf(const CodeImage& image, uint64_t ip) {
  for (const CodeRegion& region : image) {
    if (ip >= region.addr && ip - region.addr < region.bytes.size()) {
      return &region;
    }
  }
  return nullptr;
}

void AppendBlock(const pt_block& block, IptRun& run) {
  run.ips.push_back(block.ip);
  for (uint16_t i = 2; i < block.ninsn; ++i) {
    run.ips.push_back(kNotTold);
  }
  if (block.ninsn > 1) {
    run.ips.push_back(block.end_ip);
  }
}

}  // namespace

IptRun DecodeInsns(std::span<const uint8_t> pt, const EncoderConfig& config,
                   const CodeImage& image, size_t from_offset) {
  const ImagePtr libipt_image = MakeImage(image);
  const pt_config libipt_config = ConfigFor(pt, config);
  const std::unique_ptr<pt_insn_decoder, InsnDeleter> decoder(
      pt_insn_alloc_decoder(&libipt_config));
  pt_insn_set_image(decoder.get(), libipt_image.get());
  IptRun run;
  int status = pt_insn_sync_set(decoder.get(), from_offset);
  while (status >= 0) {
    status = DrainEvents(decoder.get(), status, run);
    if (status < 0) {
      break;
    }
    pt_insn insn = {};
    status = pt_insn_next(decoder.get(), &insn, sizeof insn);
    if (status >= 0 || (status != -pte_eos && insn.iclass != ptic_error)) {
      uint64_t time = 0;
      pt_insn_time(decoder.get(), &time, nullptr, nullptr);
      run.ips.push_back(insn.ip);
      run.times.push_back(time);
    }
  }
  if (status != -pte_eos) {
    uint64_t offset = 0;
    pt_insn_get_offset(decoder.get(), &offset);
    run.errors.push_back(Describe(status, offset, run.ips.size()));
  }
  return run;
}

IptRun DecodeBlocks(std::span<const uint8_t> pt, const EncoderConfig& config,
                    const CodeImage& image) {
  const ImagePtr libipt_image = MakeImage(image);
  const pt_config libipt_config = ConfigFor(pt, config);
  const std::unique_ptr<pt_block_decoder, BlockDeleter> decoder(
      pt_blk_alloc_decoder(&libipt_config));
  pt_blk_set_image(decoder.get(), libipt_image.get());
  IptRun run;
  int status = pt_blk_sync_forward(decoder.get());
  while (status >= 0) {
    status = DrainEvents(decoder.get(), status, run);
    if (status < 0) {
      break;
    }
    pt_block block = {};
    status = pt_blk_next(decoder.get(), &block, sizeof block);
    if (block.ninsn > 0) {
      AppendBlock(block, run);
    }
  }
  if (status != -pte_eos) {
    uint64_t offset = 0;
    pt_blk_get_offset(decoder.get(), &offset);
    run.errors.push_back(Describe(status, offset, run.ips.size()));
  }
  return run;
}

std::vector<size_t> FindPsbs(std::span<const uint8_t> pt) {
  uint8_t psb[packets::kPacketBytesMax];
  packets::PutPsb(psb);
  std::vector<size_t> offsets;
  auto at = pt.begin();
  while ((at = std::search(at, pt.end(), std::begin(psb), std::end(psb))) !=
         pt.end()) {
    offsets.push_back(static_cast<size_t>(at - pt.begin()));
    at += sizeof psb;
  }
  return offsets;
}

std::optional<IptInsn> ClassifyWithIpt(const CodeImage& image, uint64_t ip) {
  if (RegionOf(image, ip) == nullptr) {
    return std::nullopt;
  }
  uint8_t pt[64];
  uint8_t* end = packets::PutPsb(pt);
  end = packets::PutModeExec64(end);
  end = packets::PutIp(end, packets::IpPacket::kFup, ip, UINT64_MAX);
  end = packets::PutPsbend(end);
  const ImagePtr libipt_image = MakeImage(image);
  const pt_config config = ConfigFor(std::span(pt, end), EncoderConfig());
  const std::unique_ptr<pt_insn_decoder, InsnDeleter> decoder(
      pt_insn_alloc_decoder(&config));
  pt_insn_set_image(decoder.get(), libipt_image.get());
  int status = pt_insn_sync_forward(decoder.get());
  while (status >= 0 && (status & pts_event_pending) != 0) {
    pt_event event;
    status = pt_insn_event(decoder.get(), &event, sizeof event);
  }
  pt_insn insn = {};
  (void)pt_insn_next(decoder.get(), &insn,
                     sizeof insn);  // there is no next one
  if (insn.size == 0 || insn.iclass == ptic_error) {
    return std::nullopt;
  }
  return IptInsn{insn.iclass, insn.size};
}

}  // namespace clew::recorder
