#include "models/numerics/processor.hpp"

#include <hwy/highway.h>
#include <hwy/targets.h>
#include <xmmintrin.h>

#include <string>

namespace troupe::models::numerics {

namespace {

std::uint32_t bit_of(SimdTarget target) { return target == SimdTarget::avx2 ? HWY_AVX2 : HWY_AVX3; }

void use_up_to(SimdTarget target) {
  hwy::SetSupportedTargetsForTest(0);
  std::uint32_t allowed = 0;
  for (const SimdTarget supported : supported_targets()) {
    if (supported <= target) allowed |= bit_of(supported);
  }
  hwy::SetSupportedTargetsForTest(allowed);
  hwy::GetChosenTarget().Update(static_cast<std::uint32_t>(hwy::SupportedTargets()));
}

SimdTarget& selected() {
  static SimdTarget target = supported_targets().empty() ? SimdTarget::avx2 : supported_targets().back();
  return target;
}

}  // namespace

std::string_view to_string(SimdTarget target) { return target == SimdTarget::avx2 ? "avx2" : "avx512"; }

std::vector<SimdTarget> supported_targets() {
  // Asked of the processor itself: Highway's own answer changes with select_target.
  static const std::vector<SimdTarget> targets = [] {
    hwy::SetSupportedTargetsForTest(0);
    const auto bits = static_cast<std::uint32_t>(hwy::SupportedTargets());
    std::vector<SimdTarget> found;
    for (const SimdTarget target : {SimdTarget::avx2, SimdTarget::avx512}) {
      if ((bits & bit_of(target)) != 0) found.push_back(target);
    }
    return found;
  }();
  return targets;
}

Result<void> check_processor() {
  if (supported_targets().empty()) {
    return Error{ErrorCode::unsupported, "processor: want AVX2 and FMA (x86-64-v3), got one without them; run on a processor of 2013 or later"};
  }
  return {};
}

Result<void> select_target(std::string_view name) {
  if (auto checked = check_processor(); !checked) return checked;
  SimdTarget wanted = supported_targets().back();
  if (name == "avx2" || name == "avx512") {
    wanted = name == "avx2" ? SimdTarget::avx2 : SimdTarget::avx512;
  } else if (name != "auto") {
    return Error{ErrorCode::bad_input, "instruction set: want auto, avx2 or avx512, got '" + std::string(name) + "'"};
  }
  if (wanted > supported_targets().back()) {
    return Error{ErrorCode::unsupported, "instruction set: want avx512, got a processor that has avx2 only; use auto or avx2"};
  }
  use_up_to(wanted);
  selected() = wanted;
  return {};
}

SimdTarget selected_target() { return selected(); }

Result<void> check_float_environment() {
  // Bits 0-5 are sticky flags; 0x1F80 masks every exception, rounds to nearest, and neither flushes nor zeroes denormals.
  const unsigned control = _mm_getcsr() & 0xFFC0U;
  if (control == 0x1F80U) return {};
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string hex;
  for (int shift = 12; shift >= 0; shift -= 4) hex += kDigits[(control >> shift) & 15];
  return Error{ErrorCode::unsupported, "floating-point environment: want MXCSR 0x1F80 (nearest, denormals kept), got 0x" + hex +
                                           " on this thread; a library built with -ffast-math or -Ofast was loaded"};
}

}  // namespace troupe::models::numerics
