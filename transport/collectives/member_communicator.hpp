#pragma once

#include <memory>

#include "transport/collectives/endpoint.hpp"
#include "transport/collectives/fabric.hpp"

namespace troupe::collectives {

/// The collectives over a port: members in memory and over the wire alike.
class MemberCommunicator final : public Communicator {
 public:
  MemberCommunicator(Fabric& fabric, std::unique_ptr<Port> port);

  std::uint32_t member() const override { return port_->member(); }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(port_->spec().ranks.size()); }

  Result<void> all_reduce_sum(std::span<float> data) override;
  Result<void> all_reduce_sum(std::span<double> data) override;
  Result<void> reduce_scatter_sum(std::span<float> data, std::span<float> piece) override;
  Result<void> reduce_scatter_sum(std::span<double> data, std::span<double> piece) override;
  Result<void> all_gather(BytesView mine, std::span<std::byte> all) override;
  Result<std::vector<Bytes>> all_gather_variable(BytesView mine) override;
  Result<void> broadcast(std::span<std::byte> data, std::uint32_t root) override;
  Result<void> exchange(std::uint32_t peer, BytesView out, std::span<std::byte> in) override;
  Result<void> barrier() override;
  Result<std::unique_ptr<Communicator>> split(std::uint32_t colour, std::uint32_t key) override;

  /// The fabric lives as long as this.
  void keep_alive(std::shared_ptr<Fabric> fabric) { kept_ = std::move(fabric); }

 private:
  template <class T>
  Result<void> all_reduce(std::span<T> data);
  template <class T>
  Result<void> reduce_scatter(std::span<T> data, std::span<T> piece);

  template <class T>
  Result<void> reduce_by_doubling(std::span<T> data);
  template <class T>
  Result<void> reduce_by_halving(std::span<T> data);
  template <class T>
  Result<void> reduce_to_first(std::span<T> data);
  Result<void> send_down(std::span<std::byte> data, std::uint32_t root);
  Result<void> gather_pieces(std::span<std::byte> data, std::size_t element_bytes);
  void send(std::uint32_t to, BytesView payload);
  Result<std::vector<Bytes>> gather_variable(BytesView mine);

  std::shared_ptr<Fabric> kept_;
  Fabric& fabric_;
  std::unique_ptr<Port> port_;
  std::uint64_t splits_ = 0;
};

}  // namespace troupe::collectives
