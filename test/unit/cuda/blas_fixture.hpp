#ifndef COACCEL_TEST_UNIT_CUDA_BLAS_FIXTURE_HPP
#define COACCEL_TEST_UNIT_CUDA_BLAS_FIXTURE_HPP

#include "blas_recorder.hpp"
#include "cuda/backend.hpp"
#include "support/fake_cublaslt.hpp"
#include "support/fake_cuda.hpp"
#include "support/start_op.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace test {

/// A backend on the fakes, with one lane.
struct blas_fixture {
    explicit blas_fixture(const coaccel::cuda_options& how = {}, const fake_cuda::settings& hardware = {})
        : gpu(hardware)
    {
        make(how, gpu.api());
    }

    /// Replaces the backend by one that calls the driver by this table.
    void make(const coaccel::cuda_options& how, const coaccel::cuda::driver_api& driver)
    {
        end();
        coaccel::cuda::backend::options o;
        static_cast<coaccel::cuda_options&>(o) = how;
        o.libraries = coaccel::cuda::library_tables(&driver, &blas.api, &lt.api());
        b = coaccel::cuda::backend::create(o).value();
        b->listen({[](void* self) noexcept {
                       auto& n = static_cast<blas_fixture*>(self)->notifications;
                       n.fetch_add(1);
                       n.notify_all();
                   },
                   this});
        const auto here = b->enter();
        lane.emplace(b->make_stream(coaccel::priority::normal).value());
    }

    /// Repeats the call after each notification, until there is an answer.
    template <class Ask>
    auto repeat_until_answered(Ask ask)
    {
        for (;;) {
            const int before = notifications.load();
            auto answer = ask();
            if (answer)
                return *std::move(answer);
            notifications.wait(before);
        }
    }

    template <class T>
    coaccel::ref<T> upload(std::vector<T> data)
    {
        const auto here = b->enter();
        void* memory = repeat_until_answered([&]() -> std::optional<void*> {
            auto made = b->allocate(*lane, data.size() * sizeof(T), coaccel::memory_kind::device);
            return made.value() ? std::optional(made.value()) : std::nullopt;
        });
        finish_stream();
        std::memcpy(memory, data.data(), data.size() * sizeof(T));
        buffers.push_back({memory, data.size() * sizeof(T)});
        coaccel::any_ref r{
            .slot = static_cast<std::uint32_t>(buffers.size() - 1), .size = data.size(), .type = coaccel::dtype_v<T>};
        return coaccel::ref<T>::from_raw(r);
    }

    template <class T>
    std::vector<T> look(const coaccel::ref<T>& r) const
    {
        const auto& [memory, bytes] = buffers[r.raw().slot];
        std::vector<T> data(bytes / sizeof(T));
        std::memcpy(data.data(), memory, bytes);
        return data;
    }

    coaccel::memory_info memory()
    {
        const auto here = b->enter();
        return b->memory();
    }

    coaccel::error_code finish_stream()
    {
        coaccel::cuda::backend::event end;
        if (auto ec = b->record(end, *lane))
            return ec;
        return b->synchronize(end);
    }

    /// Valid until the next call.
    template <class Op>
    coaccel::bound_op bind(const Op& op)
    {
        REQUIRE_FALSE(op.check());
        coaccel::bound_op o;
        o.info = &coaccel::info_of<Op>();
        o.op = &op;
        addresses.resize(o.info->operands.size());
        o.operands = addresses.data();
        for (std::size_t i = 0; i < o.info->operands.size(); ++i) {
            coaccel::any_ref raw;
            std::memcpy(&raw, reinterpret_cast<const char*>(&op) + o.info->operands[i].offset, sizeof(raw));
            o.operands[i] = coaccel::detail::has_none(o.info->operands[i], raw)
                                ? nullptr
                                : static_cast<char*>(buffers[raw.slot].first) + raw.offset * coaccel::size_of(raw.type);
        }
        return o;
    }

    /// Runs the op as the engine does.
    template <class Op, class Reply = int>
    coaccel::error_code run(const Op& op, Reply* reply = nullptr)
    {
        const auto here = b->enter();
        coaccel::bound_op o = bind(op);
        o.reply = reply;
        const auto started = repeat_until_answered([&] { return try_start(*b, *lane, o); });
        if (b->dead())
            return started;
        REQUIRE_FALSE(finish_stream());
        const auto finished = b->finish(o);
        CHECK(o.state == nullptr);
        return started ? started : finished;
    }

    /// Destroys the backend and all buffers.
    void end()
    {
        if (!b)
            return;
        {
            const auto here = b->enter();
            for (const auto& [memory, bytes] : buffers)
                b->release(*lane, memory, bytes, coaccel::memory_kind::device);
        }
        buffers.clear();
        lane.reset();
        b.reset();
        CHECK(blas.alive() == 0);
        CHECK((gpu.dead() || lt.alive() == 0));
    }

    ~blas_fixture() { end(); }

    fake_cuda gpu;
    blas_recorder blas{gpu};
    fake_cublaslt lt{gpu};
    std::unique_ptr<coaccel::cuda::backend> b;
    std::optional<coaccel::cuda::backend::stream> lane;
    std::atomic<int> notifications{0};
    std::vector<std::pair<void*, std::size_t>> buffers;
    std::vector<void*> addresses;
};

} // namespace test

#endif
