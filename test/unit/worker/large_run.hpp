#ifndef COACCEL_TEST_UNIT_WORKER_LARGE_RUN_HPP
#define COACCEL_TEST_UNIT_WORKER_LARGE_RUN_HPP

#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/plan/detail/plan_ops.hpp>

#include <vector>

namespace test {

/// A run with large arguments, as a device makes it: writes, the run, reads. All of them have the same size and follow
/// each other in the memory of the instance.
class large_run final : public coaccel::detail::request {
    using byte = std::uint8_t;

public:
    large_run(std::size_t inputs, std::size_t outputs, const coaccel::any_ref& memory = {}, std::uint64_t bytes = 0)
        : in(inputs, std::vector<byte>(bytes)), out(outputs, std::vector<byte>(bytes)), writes_(inputs), reads_(outputs)
    {
        const auto all = coaccel::ref<byte>::from_raw(memory);
        std::uint64_t at = 0;
        for (std::size_t i = 0; i < inputs; ++i, at += bytes) {
            for (std::size_t n = 0; n < bytes; ++n)
                in[i][n] = static_cast<byte>(n * 7 + i);
            writes_[i] = {all.subspan(at, bytes), in[i].data(), bytes};
            bound_.push_back({.info = &coaccel::info_of<coaccel::detail::write_op<byte>>(), .op = &writes_[i]});
        }
        run.memory = all;
        run.instance = 1;
        run.chain = 1;
        bound_.push_back({.info = &coaccel::info_of<coaccel::detail::plan_run_op>(), .op = &run});
        for (std::size_t i = 0; i < outputs; ++i, at += bytes) {
            reads_[i] = {all.subspan(at, bytes), out[i].data(), bytes};
            bound_.push_back({.info = &coaccel::info_of<coaccel::detail::read_op<byte>>(), .op = &reads_[i]});
        }
        addresses_.resize(bound_.size());
        for (std::size_t i = 0; i < bound_.size(); ++i)
            bound_[i].operands = &addresses_[i];
        ops = bound_;
    }

    void post() override {}
    void destroy() noexcept override {}

    std::vector<std::vector<byte>> in, out;
    coaccel::detail::plan_run_op run;

private:
    std::vector<coaccel::detail::write_op<byte>> writes_;
    std::vector<coaccel::detail::read_op<byte>> reads_;
    std::vector<coaccel::bound_op> bound_;
    std::vector<void*> addresses_;
};

} // namespace test

#endif
