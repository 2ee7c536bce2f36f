#ifndef COACCEL_SERVE_PLAN_RUNNER_HPP
#define COACCEL_SERVE_PLAN_RUNNER_HPP

#include "serve/member_copies.hpp"
#include "serve/replica_set.hpp"

#include <coaccel/core/pinned_buffer.hpp>
#include <coaccel/device/plan.hpp>
#include <coaccel/serve/detail/row_request.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace coaccel::detail {

/// Where an argument of a model lies in the memory of a batch.
struct staged_argument {
    std::uint64_t offset = 0;
    /// The bytes of one row.
    std::uint64_t row = 0;
    std::uint64_t count = 0;
    dtype type = dtype::u8;
    slot_kind direction = slot_kind::input;
};

/// The arguments of a model in the memory of a batch: inputs, then outputs.
struct model_layout {
    explicit model_layout(const serve::batch_model& m);

    std::vector<staged_argument> arguments;
    std::size_t inputs = 0;
    std::uint64_t bytes = 0;
};

/// From this size on, the inputs or the outputs of a batch are copied on another thread. Measured: copying 256 KiB
/// keeps the executor busy for 10 to 25 us. Handing the copy over costs it 6 us, and lets the batch end 10 to 20 us
/// later.
constexpr std::uint64_t least_copied_elsewhere = 256 * 1024;

/// Runs batches as plans, on one or several devices.
class plan_runner final : public batch_runner {
public:
    plan_runner(std::vector<device> devices, models_ptr models, const serve::batcher_options& options);
    ~plan_runner() override;

    /// Called from any thread.
    const batch_models& models() const noexcept { return *models_; }

    std::uint32_t places() const noexcept override;
    bool prepares() const noexcept override { return true; }
    void start(batcher_core& core) override;
    bool has_room(std::uint64_t shape) override;
    batch_run& make(std::uint64_t shape, std::uint32_t rows) override;
    void run(batch_run& run) override;
    bool goes_on(batch_run& run) override;
    void deliver(batch_run& run) noexcept override;
    bool leave(batch_run& run, std::size_t member) override;
    bool withdraw(batch_run& run) override;
    bool lost(const batch_run& run) const noexcept override;
    void leave_members() noexcept override;
    bool can_move(const batch_run& run, std::size_t member) const override;
    void recycle(batch_run& run) override;
    void handle(batch_message& message) override;
    void drop(batch_message& message, async_op_list& out) noexcept override;
    error_code broken() const override;
    void revive() override;
    void stop() noexcept override;

private:
    struct replica;
    struct place;
    struct message;
    struct plan_message;
    struct memory_message;
    struct run_handler;
    struct repair_watch;

    struct sized_plan {
        enum class state : std::uint8_t { absent, loading, ready, refused };

        std::uint32_t rows = 0;
        state now = state::absent;
        plan loaded;
        /// After it was refused.
        exec_options::clock::time_point try_again{};
    };

    void load(std::size_t replica, std::size_t model, std::size_t size);
    void allocate(place& p);
    void on_loaded(plan_message& m);
    void on_allocated(memory_message& m);
    void step_done(const error_code& ec);
    sized_plan& choose_plan(std::size_t replica, std::size_t model, std::uint32_t rows);
    void submit(place& p, const sized_plan& chosen, std::byte* memory, bool alone);
    bool may_split(const place& p) const noexcept;
    bool run_next_alone(place& p);
    void begin_run(place& p);
    /// Copies the inputs of the members.
    static void collect(const model_layout& layout, place& p) noexcept;
    /// Copies the outputs of the members without an error.
    static void distribute(const model_layout& layout, place& p) noexcept;
    /// Starts the copy on another thread. False: it is too small, or there is no thread.
    bool collects_elsewhere(place& p);
    bool delivers_elsewhere(place& p);
    template <class Step, class Copy>
    bool copy_elsewhere(place& p, Step what, Copy copy);
    void make_single_inputs(place& p, std::uint32_t size);
    void keep_single_outputs(place& p) noexcept;
    bool is_usable(replica& r);
    void read_health();
    bool works(const place& p) const;

    const models_ptr models_;
    const serve::batcher_options options_;
    std::vector<model_layout> layouts_;
    /// For each model: runs of all its plans can run again.
    std::vector<bool> repeatable_;
    std::vector<std::unique_ptr<replica>> replicas_;
    replica_set choice_;
    member_copies copies_;
    batcher_core* core_ = nullptr;
    /// Steps of the preparation that have not ended.
    std::size_t preparing_ = 0;
    error_code failure_;
    bool stopped_ = false;
};

} // namespace coaccel::detail

#endif
