#include "scheduler/gpu.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace troupe::scheduler {
namespace {

// The few calls of the CUDA driver API that are needed, as cuda.h declares them; loaded by name, so nothing links libcuda.
using Status = int;
using Device = int;
using Context = struct ContextOfDriver*;
struct Uuid {
  std::array<unsigned char, 16> bytes;
};
constexpr Status kSuccess = 0;
constexpr Status kNoDevice = 100;

struct Driver {
  Status (*init)(unsigned) = nullptr;
  Status (*device_count)(int*) = nullptr;
  Status (*device)(Device*, int) = nullptr;
  Status (*device_name)(char*, int, Device) = nullptr;
  Status (*device_uuid)(Uuid*, Device) = nullptr;
  Status (*device_memory)(std::size_t*, Device) = nullptr;
  Status (*retain_primary_context)(Context*, Device) = nullptr;
  Status (*set_current)(Context) = nullptr;
  Status (*error_name)(Status, const char**) = nullptr;
};

template <class Call>
bool find(void* library, const char* name, Call& call) {
  call = reinterpret_cast<Call>(dlsym(library, name));
  return call != nullptr;
}

// nullptr where there is no driver. Never unloaded.
const Driver* load_driver() {
  static const Driver* const driver = []() -> const Driver* {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    static Driver found;
    const bool complete = find(library, "cuInit", found.init) && find(library, "cuDeviceGetCount", found.device_count) &&
                          find(library, "cuDeviceGet", found.device) && find(library, "cuDeviceGetName", found.device_name) &&
                          find(library, "cuDeviceGetUuid", found.device_uuid) && find(library, "cuDeviceTotalMem_v2", found.device_memory) &&
                          find(library, "cuDevicePrimaryCtxRetain", found.retain_primary_context) &&
                          find(library, "cuCtxSetCurrent", found.set_current) && find(library, "cuGetErrorName", found.error_name);
    return complete ? &found : nullptr;
  }();
  return driver;
}

Result<void> succeed(const Driver& driver, Status status, const char* call) {
  if (status == kSuccess) return {};
  const char* name = nullptr;
  driver.error_name(status, &name);
  return Error{ErrorCode::io, fmt::format("CUDA driver: {} gave {} ({})", call, name == nullptr ? "an unknown error" : name, status)};
}

std::string print_uuid(const Uuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

Result<Gpu> describe(const Driver& driver, Device device) {
  std::array<char, 128> name{};
  Uuid uuid{};
  std::size_t memory_bytes = 0;
  if (auto done = succeed(driver, driver.device_name(name.data(), static_cast<int>(name.size() - 1), device), "cuDeviceGetName"); !done) return done.error();
  if (auto done = succeed(driver, driver.device_uuid(&uuid, device), "cuDeviceGetUuid"); !done) return done.error();
  if (auto done = succeed(driver, driver.device_memory(&memory_bytes, device), "cuDeviceTotalMem"); !done) return done.error();
  return Gpu{print_uuid(uuid), name.data(), memory_bytes};
}

// The devices in the driver's order; empty without any.
Result<std::vector<Device>> list_devices(const Driver& driver) {
  const Status status = driver.init(0);
  if (status == kNoDevice) return std::vector<Device>{};
  if (auto done = succeed(driver, status, "cuInit"); !done) return done.error();
  int count = 0;
  if (auto done = succeed(driver, driver.device_count(&count), "cuDeviceGetCount"); !done) return done.error();
  std::vector<Device> devices(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    if (auto done = succeed(driver, driver.device(&devices[static_cast<std::size_t>(i)], i), "cuDeviceGet"); !done) return done.error();
  }
  return devices;
}

}  // namespace

Result<std::vector<Gpu>> find_gpus() {
  const Driver* driver = load_driver();
  if (driver == nullptr) return std::vector<Gpu>{};
  const auto devices = list_devices(*driver);
  if (!devices) return devices.error();
  std::vector<Gpu> gpus;
  for (const Device device : *devices) {
    auto gpu = describe(*driver, device);
    if (!gpu) return gpu.error();
    gpus.push_back(std::move(*gpu));
  }
  return gpus;
}

Result<void> make_gpu_current(std::string_view uuid) {
  const Driver* driver = load_driver();
  if (driver == nullptr) return Error{ErrorCode::bad_input, fmt::format("GPU {}: want it on this host, got a host without a CUDA driver", uuid)};
  const auto devices = list_devices(*driver);
  if (!devices) return devices.error();
  for (const Device device : *devices) {
    const auto gpu = describe(*driver, device);
    if (!gpu) return gpu.error();
    if (gpu->uuid != uuid) continue;
    Context context = nullptr;
    if (auto done = succeed(*driver, driver->retain_primary_context(&context, device), "cuDevicePrimaryCtxRetain"); !done) return done;
    return succeed(*driver, driver->set_current(context), "cuCtxSetCurrent");
  }
  return Error{ErrorCode::bad_input, fmt::format("GPU {}: want it on this host, got {} other GPUs; see CUDA_VISIBLE_DEVICES", uuid, devices->size())};
}

}  // namespace troupe::scheduler
