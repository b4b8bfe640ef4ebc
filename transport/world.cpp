#include "transport/world.hpp"

#include "actors/base/wire.hpp"
#include "transport/collectives/fabric.hpp"
#include "transport/collectives/mpi_wire.hpp"
#include "transport/mpi/launch.hpp"

namespace troupe::transport {
namespace {

// What each rank tells all others at the start. Only rank 0's secret and job count: MPI is trusted, it started us.
struct Introduction {
  LinkAddress address;
  Bytes secret;
  Bytes job;
  TROUPE_FIELDS(address, secret, job)
};

Result<Introduction> introduction(const LinkAddress& address, int rank) {
  Introduction own{.address = address, .secret = {}, .job = {}};
  if (rank != 0) return own;
  own.secret.resize(sizeof(Secret));
  own.job.resize(sizeof(JobId));
  if (auto filled = fill_random(own.secret); !filled) return std::move(filled).error();
  if (auto filled = fill_random(own.job); !filled) return std::move(filled).error();
  return own;
}

Result<std::vector<Introduction>> exchange(MpiWorld& mpi, const Introduction& own, int deadline_s) {
  Bytes bytes;
  encode(bytes, own);
  Result<std::vector<Bytes>> gathered = mpi.all_gather(bytes, deadline_s);
  if (!gathered) return std::move(gathered).error();
  std::vector<Introduction> all;
  for (const Bytes& one : *gathered) {
    Result<Introduction> read = decode<Introduction>(one);
    if (!read) return Error{read.error().code, "rank " + std::to_string(all.size()) + " introduces itself: " + read.error().detail};
    all.push_back(std::move(*read));
  }
  if (all[0].secret.size() != sizeof(Secret) || all[0].job.size() != sizeof(JobId))
    return Error{ErrorCode::corrupt, "rank 0 gave no secret"};
  return all;
}

}  // namespace

Result<std::unique_ptr<World>> World::join(WorldOptions options) {
  Result<bool> launched = launched_with_mpi();
  if (!launched) return std::move(launched).error();
  if (!*launched) return alone();
  std::unique_ptr<World> world(new World);
  world->deadline_s_ = options.deadline_s;
  world->leave_deadline_s_ = options.leave_deadline_s;
  if (auto joined = world->join_mpi(std::move(options)); !joined) return std::move(joined).error();
  return world;
}

Result<std::unique_ptr<World>> World::alone() {
  std::unique_ptr<World> world(new World);
  Result<std::unique_ptr<Listeners>> nowhere = Listeners::open({.unix_socket = false, .tcp = false, .interface = {}});
  if (!nowhere) return std::move(nowhere).error();
  world->hosts_ = {(*nowhere)->address().host};
  return world;
}

Result<void> World::join_mpi(WorldOptions options) {
  Result<std::shared_ptr<MpiWorld>> entered = MpiWorld::enter();
  if (!entered) return std::move(entered).error();
  mpi_ = *entered;
  rank_ = Rank{static_cast<std::uint32_t>(mpi_->rank())};
  size_ = static_cast<std::uint32_t>(mpi_->size());

  Result<std::unique_ptr<Listeners>> listeners = Listeners::open(options.listen);
  if (!listeners) return std::move(listeners).error();
  Result<Introduction> own = introduction((*listeners)->address(), mpi_->rank());
  if (!own) return std::move(own).error();
  Result<std::vector<Introduction>> all = exchange(*mpi_, *own, options.deadline_s);
  if (!all) return std::move(all).error();

  std::vector<LinkAddress> addresses;
  for (Introduction& one : *all) {
    hosts_.push_back(one.address.host);
    addresses.push_back(std::move(one.address));
  }
  if (size_ == 1) return {};

  Membership membership{.rank = rank_, .size = size_, .job = {}, .secret = {}, .build = build_id()};
  std::ranges::copy(all->front().secret, membership.secret.begin());
  std::ranges::copy(all->front().job, membership.job.begin());
  options.link.on_lost = [mpi = mpi_, also = std::move(options.link.on_lost)](Rank lost, const Error& reason) {
    mpi->note_lost_rank();
    collectives::Fabric::process().lose(lost, reason.detail);
    if (also) also(lost, reason);
  };
  link_ = std::make_unique<AsioLink>(std::move(*listeners), membership, std::move(addresses), std::move(options.link));
  Result<std::shared_ptr<collectives::Wire>> wire = collectives::open_mpi_wire(mpi_, {.deadline_s = options.deadline_s});
  if (!wire) return std::move(wire).error();
  collectives::Fabric::process().attach(std::move(*wire));
  return link_->await_peers();
}

World::~World() { (void)leave(); }

Result<std::vector<Bytes>> World::all_gather(BytesView mine, int deadline_s) {
  if (mpi_) return mpi_->all_gather(mine, deadline_s > 0 ? deadline_s : deadline_s_);
  return std::vector<Bytes>{Bytes(mine.begin(), mine.end())};
}

bool World::leave() {
  if (std::exchange(left_, true)) return left_well_;
  if (!mpi_) return true;
  // The links stay open until all are here: a rank that dies on the way is seen by its link.
  left_well_ = !mpi_->has_lost_rank() && mpi_->all_gather({}, leave_deadline_s_).has_value();
  if (!left_well_) mpi_->note_lost_rank();
  if (link_) link_->stop();
  collectives::Fabric::process().attach(nullptr);
  // A rank that was lost between the barrier and here counts as well.
  left_well_ = mpi_->leave() && left_well_;
  return left_well_;
}

}  // namespace troupe::transport
