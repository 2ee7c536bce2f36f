#ifndef COACCEL_TEST_SUPPORT_PLAN_CONTEXT_HPP
#define COACCEL_TEST_SUPPORT_PLAN_CONTEXT_HPP

#include "support/context_driver.hpp"

#include <coaccel/plan/detail/plan_ops.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

// Plans without a builder, and their instances in a context without a device.
namespace test {

/// Makes a plan without checking it.
class plan_maker {
public:
    template <coaccel::element T>
    coaccel::ref<T> slot(coaccel::slot_kind kind, std::uint64_t count)
    {
        const auto index = static_cast<std::uint32_t>(data_.slots.size());
        auto& order = indices(kind);
        data_.slots.push_back({.name = {},
                               .kind = kind,
                               .type = coaccel::dtype_v<T>,
                               .count = count,
                               .offset = 0,
                               .index = static_cast<std::uint32_t>(order.size())});
        order.push_back(index);
        return coaccel::ref<T>::from_raw(
            {.device = coaccel::detail::plan_device, .slot = index, .size = count, .type = coaccel::dtype_v<T>});
    }

    coaccel::ref<float> floats(coaccel::slot_kind kind, std::uint64_t count) { return slot<float>(kind, count); }

    template <class Op>
    plan_maker& add(const Op& op)
    {
        auto& made = data_.ops.emplace_back(coaccel::detail::listed_op{&coaccel::info_of<Op>(), {}});
        made.record.assign(*made.info, &op);
        if constexpr (requires { op.keep(); })
            made.record.kept = op.keep();
        return *this;
    }

    /// The slot becomes the value of a field of the last op.
    template <class Op, class T>
    plan_maker& bind(T Op::* field, const coaccel::ref<T>& from)
    {
        const Op sample{};
        const auto offset = reinterpret_cast<const char*>(&(sample.*field)) - reinterpret_cast<const char*>(&sample);
        const auto& fields = coaccel::info_of<Op>().fields;
        for (std::uint32_t i = 0; i < fields.size(); ++i)
            if (fields[i].offset == offset)
                return bind_field(i, from.raw());
        FAIL("the field is not described");
        return *this;
    }

    /// As above, for a field by its index.
    plan_maker& bind_field(std::uint32_t field, const coaccel::any_ref& from)
    {
        data_.bindings.push_back({static_cast<std::uint32_t>(data_.ops.size() - 1), field, from.slot});
        return *this;
    }

    coaccel::detail::plan_data finish()
    {
        using coaccel::slot_kind;
        data_.instance_bytes = 0;
        data_.staged_inputs = place(slot_kind::input);
        data_.staged_inputs.bytes += place(slot_kind::parameter).bytes;
        data_.staged_outputs = place(slot_kind::output);
        (void)place(slot_kind::scratch);
        return data_;
    }

private:
    std::vector<std::uint32_t>& indices(coaccel::slot_kind kind)
    {
        using coaccel::slot_kind;
        switch (kind) {
        case slot_kind::input: return data_.inputs;
        case slot_kind::output: return data_.outputs;
        case slot_kind::constant: return data_.constants;
        case slot_kind::state: return data_.states;
        case slot_kind::parameter: return data_.parameters;
        case slot_kind::scratch: break;
        }
        return scratch_;
    }

    coaccel::detail::byte_range place(coaccel::slot_kind kind)
    {
        const auto start = data_.instance_bytes;
        for (const auto i : indices(kind)) {
            data_.slots[i].offset = data_.instance_bytes;
            const auto unit = coaccel::detail::slot_alignment;
            data_.instance_bytes += (data_.slots[i].bytes() + unit - 1) / unit * unit;
        }
        return {start, data_.instance_bytes - start};
    }

    coaccel::detail::plan_data data_;
    std::vector<std::uint32_t> scratch_;
};

class load_request final : public coaccel::detail::request {
public:
    load_request(const coaccel::detail::plan_load_head& head, const std::vector<coaccel::any_ref>& refs)
        : info_(coaccel::detail::make_load_info(*head.plan)), op_(coaccel::detail::op_units(info_.size)),
          addresses_(refs.size())
    {
        std::memcpy(op_.data(), &head, sizeof(head));
        std::memcpy(reinterpret_cast<char*>(op_.data()) + sizeof(head), refs.data(),
                    refs.size() * sizeof(coaccel::any_ref));
        bound_ = {.info = &info_, .op = op_.data(), .reply = &reply, .operands = addresses_.data()};
        ops = {&bound_, 1};
    }

    void post() override {}
    void destroy() noexcept override {}

    coaccel::detail::plan_loaded reply{};

private:
    coaccel::op_info info_;
    std::vector<coaccel::detail::op_unit> op_;
    std::vector<void*> addresses_;
    coaccel::bound_op bound_;
};

/// An instance with its buffers.
class test_instance {
public:
    using bytes = std::uint8_t;

    test_instance(context_driver& d, const coaccel::detail::plan_data& p, std::uint64_t instance,
                  std::uint64_t chain_number)
        : plan(p), id(instance), chain(chain_number), driver_(d)
    {
        refs.push_back(buffer(std::max<std::uint64_t>(p.instance_bytes, 1)));
        for (const auto* kind : {&p.constants, &p.states, &p.states})
            for (const auto slot : *kind)
                refs.push_back(buffer(p.slots[slot].bytes()));
    }

    std::unique_ptr<load_request> make_load(coaccel::exec_options how = {}) const
    {
        auto made = std::make_unique<load_request>(coaccel::detail::plan_load_head{id, chain, &plan}, refs);
        made->options = how;
        return made;
    }

    coaccel::error_code load(coaccel::exec_options how = {})
    {
        const auto r = make_load(how);
        const auto ec = driver_.outcome_of(*r);
        recorded = r->reply.recorded != 0;
        return ec;
    }

    coaccel::error_code unload(coaccel::exec_options how = {})
    {
        exec<coaccel::detail::plan_unload_op> r(coaccel::detail::plan_unload_op{id, chain}, how);
        return driver_.outcome_of(r);
    }

    void set(std::size_t ref, const std::vector<float>& data)
    {
        const coaccel::detail::write_op<bytes> op{coaccel::ref<bytes>::from_raw(refs[ref]),
                                                  reinterpret_cast<const bytes*>(data.data()),
                                                  data.size() * sizeof(float)};
        exec<coaccel::detail::write_op<bytes>> r(op, coaccel::exec_options{});
        REQUIRE_FALSE(driver_.outcome_of(r));
    }

    std::vector<float> get(std::size_t ref)
    {
        std::vector<float> data(refs[ref].size / sizeof(float));
        const coaccel::detail::read_op<bytes> op{coaccel::ref<bytes>::from_raw(refs[ref]),
                                                 reinterpret_cast<bytes*>(data.data()), data.size() * sizeof(float)};
        exec<coaccel::detail::read_op<bytes>> r(op, coaccel::exec_options{});
        REQUIRE_FALSE(driver_.outcome_of(r));
        return data;
    }

    /// The positions of the first constant and the first state in `refs`.
    std::size_t first_constant() const { return coaccel::detail::plan_load_operands(plan).constants; }
    std::size_t first_state() const { return coaccel::detail::plan_load_operands(plan).states; }

    const coaccel::detail::plan_data& plan;
    const std::uint64_t id;
    const std::uint64_t chain;
    std::vector<coaccel::any_ref> refs;
    bool recorded = false;

private:
    coaccel::any_ref buffer(std::uint64_t size) { return driver_.allocate(size, coaccel::dtype::u8); }

    context_driver& driver_;
};

/// The arguments of a run.
using float_arguments = std::vector<std::vector<float>>;

/// A run with arguments of floats: the inputs, then the parameters.
class plan_run {
public:
    plan_run(const test_instance& i, float_arguments inputs, coaccel::exec_options how = {})
        : inputs_(std::move(inputs))
    {
        const auto& p = i.plan;
        for (std::size_t n = 0; n < inputs_.size(); ++n)
            in_.push_back(
                argument(p.slots[n < p.inputs.size() ? p.inputs[n] : p.parameters[n - p.inputs.size()]], inputs_[n]));
        outputs.resize(p.outputs.size());
        for (std::size_t n = 0; n < outputs.size(); ++n) {
            outputs[n].assign(p.slots[p.outputs[n]].count, -1.0f);
            out_.push_back(argument(p.slots[p.outputs[n]], outputs[n]));
        }
        coaccel::detail::plan_run_op op;
        op.memory = coaccel::ref<std::uint8_t>::from_raw(i.refs.front());
        op.instance = i.id;
        op.chain = i.chain;
        op.inputs = in_.data();
        op.outputs = out_.data();
        op.input_count = static_cast<std::uint32_t>(in_.size());
        op.output_count = static_cast<std::uint32_t>(out_.size());
        request = std::make_unique<exec<coaccel::detail::plan_run_op>>(op, how);
    }

    std::unique_ptr<exec<coaccel::detail::plan_run_op>> request;
    float_arguments outputs;

private:
    static coaccel::detail::run_argument argument(const coaccel::detail::plan_slot& s, std::vector<float>& data)
    {
        return {reinterpret_cast<std::byte*>(data.data()), {s.offset, s.bytes()}};
    }

    float_arguments inputs_;
    std::vector<coaccel::detail::run_argument> in_;
    std::vector<coaccel::detail::run_argument> out_;
};

/// The contexts for the cases of plan_cases.hpp. A program with such cases must define this function.
std::vector<context_setting> plan_contexts();

template <class Test>
void for_each_plan_context(Test test, bool concurrent_only = false)
{
    for (const auto& s : plan_contexts()) {
        if (concurrent_only && !s.concurrent)
            continue;
        CAPTURE(s.name);
        const auto world = s.make();
        test(*world);
    }
}

} // namespace test

#endif
