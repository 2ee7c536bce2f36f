#include "raw_batches.hpp"

#include "clock.hpp"

#include <cstring>

namespace coaccel::bench {

raw_batches::slot::slot(const raw_gpu& r, std::size_t floats)
    : raw(r), input(r, floats), output(r, floats), x(r, floats * sizeof(float)), y(r, floats * sizeof(float))
{
    const auto inside = raw.enter();
    raw.check(raw.api().cuEventCreate(&end, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
}

raw_batches::slot::~slot()
{
    CUcontext popped = nullptr;
    if (raw.api().cuCtxPushCurrent(raw.context()) != CUDA_SUCCESS)
        return;
    (void)raw.api().cuEventDestroy(end);
    (void)raw.api().cuCtxPopCurrent(&popped);
}

raw_batches::raw_batches(const raw_gpu& raw, const request_shape& shape, std::size_t rows)
    : raw_(raw), shape_(shape), rows_(rows), matrix_(raw, shape), lane_(raw)
{
    for (int i = 0; i < 3; ++i)
        slots_.emplace_back(raw, rows * shape.n);
    for (std::size_t i = 0; i < rows; ++i)
        callers_.push_back({request_input(shape), std::vector<float>(shape.n)});
}

void raw_batches::start(slot& s)
{
    const std::size_t bytes = shape_.n * sizeof(float);
    float* to = s.input.span().data();
    for (const caller& c : callers_) {
        std::memcpy(to, c.input.data(), bytes);
        to += shape_.n;
    }
    const auto& api = raw_.api();
    raw_.check(api.cuMemcpyHtoDAsync(s.x.address(), s.input.span().data(), rows_ * bytes, lane_.stream()),
               "cuMemcpyHtoDAsync");
    lane_.multiply(shape_.n, rows_, matrix_.memory(), s.x, s.y);
    raw_.check(api.cuMemcpyDtoHAsync(s.output.span().data(), s.y.address(), rows_ * bytes, lane_.stream()),
               "cuMemcpyDtoHAsync");
    raw_.check(api.cuEventRecord(s.end, lane_.stream()), "cuEventRecord");
}

void raw_batches::finish(slot& s)
{
    raw_.check(raw_.api().cuEventSynchronize(s.end), "cuEventSynchronize");
    const float* from = s.output.span().data();
    for (caller& c : callers_) {
        std::memcpy(c.output.data(), from, shape_.n * sizeof(float));
        from += shape_.n;
    }
}

double raw_batches::time(int batches)
{
    const auto inside = raw_.enter();
    const auto slot_of = [this](int batch) -> slot& { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; };
    const auto began = clock::now();
    const int ahead = static_cast<int>(slots_.size()) - 1;
    for (int i = 0; i < batches + ahead; ++i) {
        if (i < batches)
            start(slot_of(i));
        if (i >= ahead)
            finish(slot_of(i - ahead));
    }
    const double took = seconds_since(began);
    for (const caller& c : callers_)
        check_answer(shape_, c.output);
    return took / (static_cast<double>(rows_) * batches);
}

} // namespace coaccel::bench
