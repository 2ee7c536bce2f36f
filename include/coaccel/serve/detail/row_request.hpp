#ifndef COACCEL_SERVE_DETAIL_ROW_REQUEST_HPP
#define COACCEL_SERVE_DETAIL_ROW_REQUEST_HPP

#include <coaccel/device/plan.hpp>
#include <coaccel/serve/batch_model.hpp>
#include <coaccel/serve/detail/batcher_access.hpp>

#include <array>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

namespace coaccel::detail {

/// Which model of a batcher a request is for, and how many rows it has.
struct matched_rows {
    std::uint32_t model = 0;
    std::uint32_t rows = 0;
    error_code refused;
};

/// The models of a batcher, by which requests are checked.
struct batch_models {
    std::string name;
    std::vector<serve::batch_model> models;

    matched_rows match(std::span<const run_range> ranges) const noexcept;
};

using models_ptr = std::shared_ptr<const batch_models>;

/// The model of this batcher that the arguments fit. Preconditions: it runs plans. Without a batcher nothing fits, and
/// the request is refused for that reason.
COACCEL_DECL matched_rows match_rows(const batcher_core* core, std::span<const run_range> ranges) noexcept;

/// A request to a batcher that runs plans: rows of each input and each output.
class row_request : public batch_request {
public:
    std::span<const run_range> ranges;

protected:
    row_request(const matched_rows& m, const exec_options& how) noexcept : batch_request(m.model, m.rows, how)
    {
        refused = m.refused;
    }

    ~row_request() = default;
};

template <std::size_t N>
class row_request_of : public row_request {
public:
    row_request_of(const batcher_core* core, const std::array<run_range, N>& given, const exec_options& how) noexcept
        : row_request(match_rows(core, given), how), ranges_(given)
    {
        ranges = ranges_;
    }

    auto take() { return std::tuple(ec); }

protected:
    ~row_request_of() = default;

private:
    std::array<run_range, N> ranges_;
};

/// A request whose number of arguments is known only at run time. The ranges are the caller's.
class row_request_view : public row_request {
public:
    row_request_view(const batcher_core* core, std::span<const run_range> given, const exec_options& how) noexcept
        : row_request(match_rows(core, given), how)
    {
        ranges = given;
    }

    auto take() { return std::tuple(ec); }

protected:
    ~row_request_view() = default;
};

/// Makes a batcher and waits until it is prepared.
template <class Batcher>
class create_batcher_request : public batch_control {
public:
    explicit create_batcher_request(std::shared_ptr<batcher_handle> handle) noexcept
        : batch_control(verb::start), handle_(std::move(handle))
    {}

    auto take() { return std::tuple(ec, ec ? Batcher() : Batcher(std::move(handle_))); }

protected:
    ~create_batcher_request() = default;

private:
    std::shared_ptr<batcher_handle> handle_;
};

/// A batcher that is not prepared yet, or why the arguments are wrong.
COACCEL_DECL result<std::shared_ptr<batcher_handle>> make_plan_batcher(const asio::any_io_executor& ex,
                                                                       std::vector<device> devices,
                                                                       std::vector<serve::batch_model> models,
                                                                       const serve::batcher_options& options);

/// Completes a call that could not begin.
template <class Batcher>
class refused_batcher : public async_op_base {
public:
    explicit refused_batcher(error_code why) noexcept { ec = why; }

    auto take() { return std::tuple(ec, Batcher()); }

protected:
    ~refused_batcher() = default;
};

template <class Batcher>
struct initiate_create_batcher {
    using executor_type = asio::any_io_executor;

    executor_type executor;

    executor_type get_executor() const noexcept { return executor; }

    template <class Handler>
    void operator()(Handler&& handler, std::vector<device> devices, std::vector<serve::batch_model> models,
                    const serve::batcher_options& options) const
    {
        auto made = make_plan_batcher(executor, std::move(devices), std::move(models), options);
        if (!made) {
            using op_type = handler_op<refused_batcher<Batcher>, std::decay_t<Handler>, executor_type>;
            return op_type::create(static_cast<Handler&&>(handler), executor, made.error())->post();
        }
        const batcher_ptr core = made.value()->core;
        initiate_control<create_batcher_request<Batcher>>{core}(static_cast<Handler&&>(handler),
                                                                std::move(made).value());
    }
};

} // namespace coaccel::detail

#endif
