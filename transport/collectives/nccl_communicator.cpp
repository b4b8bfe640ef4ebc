#include "transport/collectives/nccl_communicator.hpp"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace troupe::collectives {
namespace {

Result<void> cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return {};
  return Error{ErrorCode::io, std::string(call) + ": " + cudaGetErrorString(code)};
}
Result<void> nccl(ncclResult_t code, const char* call) {
  if (code == ncclSuccess) return {};
  return Error{ErrorCode::io, std::string(call) + ": " + ncclGetErrorString(code)};
}

/// Device memory, kept from call to call while it is large enough.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(data_); }
  Result<std::byte*> of(std::size_t bytes) {
    if (bytes > bytes_) {
      cudaFree(data_);
      data_ = nullptr;
      bytes_ = 0;
      if (Result<void> made = cuda(cudaMalloc(&data_, bytes), "cudaMalloc"); !made) return made.error();
      bytes_ = bytes;
    }
    return static_cast<std::byte*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// What members must agree on before data moves.
struct Fingerprint {
  std::uint64_t number = 0;
  std::uint64_t operation = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Fingerprint&) const = default;
};
enum Operation : std::uint64_t { sum_float, sum_double, scatter_float, scatter_double, gather, gather_variable, broadcasting, synchronising, splitting };

/// The tree over members of rows[member], element by element, into row `first`.
template <class T>
void add_tree(std::span<T> rows, std::size_t count, std::uint32_t first, std::uint32_t members) {
  if (members == 1) return;
  const std::uint32_t left = std::bit_floor(members - 1);
  add_tree(rows, count, first, left);
  add_tree(rows, count, first + left, members - left);
  T* to = rows.data() + first * count;
  const T* from = rows.data() + (first + left) * count;
  for (std::size_t i = 0; i < count; ++i) to[i] = to[i] + from[i];
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(ncclComm_t group, cudaStream_t stream, std::uint32_t member, std::uint32_t size) : group_(group), stream_(stream), member_(member), size_(size) {}
  ~NcclCommunicator() override {
    ncclCommDestroy(group_);
    cudaStreamDestroy(stream_);
  }

  std::uint32_t member() const override { return member_; }
  std::uint32_t size() const override { return size_; }
  Result<void> all_reduce_sum(std::span<float> data) override { return all_reduce(data, sum_float); }
  Result<void> all_reduce_sum(std::span<double> data) override { return all_reduce(data, sum_double); }
  Result<void> reduce_scatter_sum(std::span<float> data, std::span<float> piece) override { return reduce_scatter(data, piece, scatter_float); }
  Result<void> reduce_scatter_sum(std::span<double> data, std::span<double> piece) override { return reduce_scatter(data, piece, scatter_double); }

  Result<void> all_gather(BytesView mine, std::span<std::byte> all) override {
    if (Result<void> agreed = agree(gather, mine.size()); !agreed) return agreed;
    return move_all(mine, all);
  }

  Result<std::vector<Bytes>> all_gather_variable(BytesView mine) override {
    if (Result<void> agreed = agree(gather_variable, 0); !agreed) return agreed.error();
    const std::uint64_t own = mine.size();
    std::vector<std::uint64_t> sizes(size_);
    if (Result<void> moved = move_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(sizes))); !moved) return moved.error();
    const std::size_t longest = *std::max_element(sizes.begin(), sizes.end());
    Bytes padded(mine.begin(), mine.end()), all(longest * size_);
    padded.resize(longest);
    if (Result<void> moved = move_all(padded, all); !moved) return moved.error();
    std::vector<Bytes> parts;
    for (std::uint32_t i = 0; i < size_; ++i) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(i * longest);
      parts.emplace_back(from, from + static_cast<std::ptrdiff_t>(sizes[i]));
    }
    return parts;
  }

  Result<void> broadcast(std::span<std::byte> data, std::uint32_t root) override {
    if (Result<void> agreed = agree(broadcasting, data.size()); !agreed) return agreed;
    if (data.empty()) return {};
    Result<std::byte*> buffer = out_.of(data.size());
    if (!buffer) return buffer.error();
    if (member_ == root) {
      if (Result<void> copied = copy(*buffer, data.data(), data.size(), cudaMemcpyHostToDevice); !copied) return copied;
    }
    if (Result<void> done = nccl(ncclBroadcast(*buffer, *buffer, data.size(), ncclUint8, static_cast<int>(root), group_, stream_), "ncclBroadcast"); !done) return done;
    return copy(data.data(), *buffer, data.size(), cudaMemcpyDeviceToHost);
  }

  Result<void> exchange(std::uint32_t peer, BytesView out, std::span<std::byte> in) override {
    Result<std::byte*> from = out_.of(out.size());
    Result<std::byte*> to = in_.of(in.size());
    if (!from || !to) return (from ? to : from).error();
    if (Result<void> copied = copy(*from, out.data(), out.size(), cudaMemcpyHostToDevice); !copied) return copied;
    ncclGroupStart();
    const ncclResult_t sent = out.empty() ? ncclSuccess : ncclSend(*from, out.size(), ncclUint8, static_cast<int>(peer), group_, stream_);
    const ncclResult_t received = in.empty() ? ncclSuccess : ncclRecv(*to, in.size(), ncclUint8, static_cast<int>(peer), group_, stream_);
    const ncclResult_t ended = ncclGroupEnd();
    if (Result<void> done = nccl(sent != ncclSuccess ? sent : received != ncclSuccess ? received : ended, "ncclSend and ncclRecv"); !done) return done;
    return copy(in.data(), *to, in.size(), cudaMemcpyDeviceToHost);
  }

  Result<void> barrier() override { return agree(synchronising, 0); }

  Result<std::unique_ptr<Communicator>> split(std::uint32_t colour, std::uint32_t key) override {
    if (Result<void> agreed = agree(splitting, 0); !agreed) return agreed.error();
    ncclComm_t part = nullptr;
    if (Result<void> done = nccl(ncclCommSplit(group_, static_cast<int>(colour), static_cast<int>(key), &part, nullptr), "ncclCommSplit"); !done) return done.error();
    int member = 0, size = 0;
    ncclCommUserRank(part, &member);
    ncclCommCount(part, &size);
    cudaStream_t stream = nullptr;
    if (Result<void> made = cuda(cudaStreamCreate(&stream), "cudaStreamCreate"); !made) return made.error();
    return std::unique_ptr<Communicator>(new NcclCommunicator(part, stream, static_cast<std::uint32_t>(member), static_cast<std::uint32_t>(size)));
  }

 private:
  Result<void> copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return {};
    if (Result<void> done = cuda(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync"); !done) return done;
    return cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  Result<void> move_all(BytesView mine, std::span<std::byte> all) {
    if (mine.empty()) return {};
    Result<std::byte*> from = out_.of(mine.size());
    Result<std::byte*> to = in_.of(all.size());
    if (!from || !to) return (from ? to : from).error();
    if (Result<void> copied = copy(*from, mine.data(), mine.size(), cudaMemcpyHostToDevice); !copied) return copied;
    if (Result<void> done = nccl(ncclAllGather(*from, *to, mine.size(), ncclUint8, group_, stream_), "ncclAllGather"); !done) return done;
    return copy(all.data(), *to, all.size(), cudaMemcpyDeviceToHost);
  }

  Result<void> agree(Operation operation, std::uint64_t bytes) {
    const Fingerprint mine{.number = calls_++, .operation = operation, .bytes = bytes};
    std::vector<Fingerprint> all(size_);
    if (Result<void> moved = move_all(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))); !moved) return moved;
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (all[i] == mine) continue;
      return Error{ErrorCode::collective_mismatch, "NCCL group: member " + std::to_string(member_) + " is at call " + std::to_string(mine.number) + " (operation " +
                                                       std::to_string(mine.operation) + ", " + std::to_string(mine.bytes) + " bytes), member " + std::to_string(i) + " at call " +
                                                       std::to_string(all[i].number) + " (operation " + std::to_string(all[i].operation) + ", " + std::to_string(all[i].bytes) + " bytes)"};
    }
    return {};
  }

  template <class T>
  Result<void> all_reduce(std::span<T> data, Operation operation) {
    if (Result<void> agreed = agree(operation, data.size_bytes()); !agreed) return agreed;
    std::vector<T> rows(data.size() * size_);
    if (Result<void> moved = move_all(std::as_bytes(data), std::as_writable_bytes(std::span(rows))); !moved) return moved;
    add_tree(std::span(rows), data.size(), 0, size_);
    std::copy_n(rows.begin(), data.size(), data.begin());
    return {};
  }

  template <class T>
  Result<void> reduce_scatter(std::span<T> data, std::span<T> piece, Operation operation) {
    if (Result<void> reduced = all_reduce(data, operation); !reduced) return reduced;
    const auto [first, last] = piece_of(data.size(), member_, size_);
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(first), last - first, piece.begin());
    return {};
  }

  ncclComm_t group_;
  cudaStream_t stream_;
  std::uint32_t member_, size_;
  std::uint64_t calls_ = 0;
  DeviceBuffer out_, in_;
};

}  // namespace

bool has_nccl() { return true; }

Result<Bytes> make_nccl_id() {
  ncclUniqueId id;
  if (Result<void> made = nccl(ncclGetUniqueId(&id), "ncclGetUniqueId"); !made) return made.error();
  const auto bytes = std::as_bytes(std::span(id.internal));
  return Bytes(bytes.begin(), bytes.end());
}

Result<std::unique_ptr<Communicator>> open_nccl_communicator(BytesView id, std::uint32_t member, std::uint32_t size) {
  ncclUniqueId unique;
  if (id.size() != sizeof(unique.internal)) return Error{ErrorCode::bad_input, "NCCL id: want " + std::to_string(sizeof(unique.internal)) + " bytes, got " + std::to_string(id.size())};
  std::memcpy(unique.internal, id.data(), id.size());
  ncclComm_t group = nullptr;
  if (Result<void> opened = nccl(ncclCommInitRank(&group, static_cast<int>(size), unique, static_cast<int>(member)), "ncclCommInitRank"); !opened) return opened.error();
  cudaStream_t stream = nullptr;
  if (Result<void> made = cuda(cudaStreamCreate(&stream), "cudaStreamCreate"); !made) {
    ncclCommDestroy(group);
    return made.error();
  }
  return std::unique_ptr<Communicator>(new NcclCommunicator(group, stream, member, size));
}

}  // namespace troupe::collectives
