"""The steps of a schedule as methods, for type checkers and editors. Generated of the primitives by

    KINGPOST_WRITE_PAGES=1 cargo test --test repository stubs
"""

from typing import Any, Iterable, Mapping, Optional, Union

from kingpost.schedule import Made

#: A name, or the one thing that a step made.
Name = Union[str, Made]

class Steps:
    def alias_storage(
        self,
        vars: Iterable[Name],
        storage: Name,
    ) -> Made:
        """Lets temporaries share one buffer."""
        ...

    def assign_to_rule(
        self,
        var: Name,
    ) -> Made:
        """Replaces a temporary by its definition as a substitution rule."""
        ...

    def assume(
        self,
        *,
        at_least: Optional[Mapping[str, Any]] = None,
        at_most: Optional[Mapping[str, Any]] = None,
        multiple_of: Optional[Mapping[str, Any]] = None,
        injective: Optional[Mapping[str, Any]] = None,
        symmetric: Optional[Mapping[str, Any]] = None,
    ) -> Made:
        """Asserts a bound on a parameter, or that an array is injective."""
        ...

    def buffer_writes(
        self,
        var: Name,
        at: Optional[Name] = None,
        space: Optional[Name] = None,
        temporary: Optional[Name] = None,
        work_items: Optional[Iterable[int]] = None,
    ) -> Made:
        """Writes to a temporary instead of an array, and stores it once."""
        ...

    def change_layout(
        self,
        var: Name,
        layout: Name,
    ) -> Made:
        """Gives an array other strides or an axis of vectors."""
        ...

    def collect_factors(
        self,
        insns: Iterable[Name],
        of: Iterable[Name],
    ) -> Made:
        """Writes values as sums of scalars times factors."""
        ...

    def combine_orbits(
        self,
        var: Name,
        orbits: Iterable[Iterable[int]],
        rounded: Optional[bool] = None,
    ) -> Made:
        """Computes with sums and differences of the elements of orbits."""
        ...

    def contract_array(
        self,
        var: Name,
        axis: int,
    ) -> Made:
        """Drops an axis of a temporary of which one element is alive at a time."""
        ...

    def convert_to_update(
        self,
        insns: Any,
    ) -> Made:
        """Makes an accumulation an update."""
        ...

    def copy_table(
        self,
        var: Name,
        insns: Any,
        copy: Name,
    ) -> Made:
        """Gives instructions a copy of a table."""
        ...

    def crop_table(
        self,
        var: Name,
    ) -> Made:
        """Drops entries of a table that nothing loads."""
        ...

    def cut_iname(
        self,
        iname: Name,
        at: Name,
    ) -> Made:
        """Cuts a loop in two, neither of which has conditions that always hold."""
        ...

    def declare_callee(
        self,
        text: Name,
    ) -> Made:
        """Declares a kernel that parts of the program may become calls of."""
        ...

    def decompose_parity(
        self,
        lines: Iterable[Any],
        half: int,
        halved: Optional[bool] = None,
    ) -> Made:
        """Keeps the even and the odd part of lines instead of their elements."""
        ...

    def distribute_loop(
        self,
        iname: Name,
        before: Iterable[Name],
        names: Optional[Iterable[Name]] = None,
    ) -> Made:
        """Distributes a loop over the parts of its body."""
        ...

    def drop_zero_terms(
        self,
        insn: Name,
    ) -> Made:
        """Removes an update that adds nothing but zeros."""
        ...

    def duplicate_iname(
        self,
        iname: Name,
        insns: Any,
        name: Optional[Name] = None,
        before: Optional[bool] = None,
    ) -> Made:
        """Gives some instructions of a loop a loop of their own."""
        ...

    def eliminate_common_subexpressions(
        self,
        insns: Optional[Any] = None,
        temporary: Optional[Name] = None,
        least_size: Optional[int] = None,
        least_uses: Optional[int] = None,
    ) -> Made:
        """Computes equal subexpressions once."""
        ...

    def embed_table(
        self,
        var: Name,
    ) -> Made:
        """Replaces loads of a table at constant indices by their values."""
        ...

    def expand_array(
        self,
        var: Name,
        inames: Iterable[Name],
    ) -> Made:
        """Gives a temporary an axis for each of some loops."""
        ...

    def expand_products(
        self,
        insn: Name,
        sums: Optional[Iterable[Name]] = None,
    ) -> Made:
        """Multiplies out sums that are factors of a product."""
        ...

    def expand_rule(
        self,
        rule: Name,
    ) -> Made:
        """Inlines a substitution rule."""
        ...

    def extract_rule(
        self,
        name: Name,
        params: Iterable[Name],
        template: Name,
        insns: Optional[Any] = None,
        only: Optional[Iterable[Name]] = None,
    ) -> Made:
        """Makes a substitution rule of a subexpression."""
        ...

    def factor_out(
        self,
        iname: Name,
        insn: Optional[Name] = None,
        partial: Optional[Name] = None,
    ) -> Made:
        """Multiplies a sum once instead of each of its terms."""
        ...

    def factor_quadrature(
        self,
        iname: Name,
        digits: Optional[int] = None,
        multiple: Optional[int] = None,
        blocks: Optional[bool] = None,
    ) -> Made:
        """Sums over fewer modes instead of the points of a quadrature rule."""
        ...

    def factor_rank(
        self,
        vars: Iterable[Name],
        digits: Optional[int] = None,
        multiple: Optional[int] = None,
    ) -> Made:
        """Replaces tables by products with a basis of their columns."""
        ...

    def factor_table(
        self,
        var: Name,
        sizes: Iterable[Iterable[int]],
        factors: Optional[Iterable[Iterable[int]]] = None,
        names: Optional[Iterable[Name]] = None,
    ) -> Made:
        """Replaces a table by the product of smaller ones."""
        ...

    def factor_update(
        self,
        insn: Name,
        inames: Iterable[Name],
        partial: Optional[Name] = None,
    ) -> Made:
        """Accumulates into partial values that are joined after the loop."""
        ...

    def factorise_sum(
        self,
        insn: Name,
        by: Iterable[Name],
    ) -> Made:
        """Collects factors that terms of a sum have in common."""
        ...

    def fix_argument(
        self,
        var: Name,
        values: Mapping[str, Any],
    ) -> Made:
        """Makes a table or a literal of an input whose values are known."""
        ...

    def fix_parameter(
        self,
        param: Name,
        value: Any,
    ) -> Made:
        """Replaces a parameter by a constant or by other parameters."""
        ...

    def fold_array(
        self,
        var: Name,
        axis: int,
        length: int,
    ) -> Made:
        """Lets the elements along an axis of a temporary take turns in a few."""
        ...

    def fuse_launches(
        self,
        launches: Iterable[Name],
    ) -> Made:
        """Makes one launch of several."""
        ...

    def fuse_loops(
        self,
        first: Name,
        second: Name,
    ) -> Made:
        """Fuses two neighbouring loops over the same values up to a shift."""
        ...

    def guard_iname(
        self,
        iname: Name,
        over: Optional[Iterable[Name]] = None,
        widest: Optional[Name] = None,
        maximum: Optional[Name] = None,
    ) -> Made:
        """Makes bounds of a loop conditions of what is inside."""
        ...

    def hoist(
        self,
        statements: Any,
    ) -> Made:
        """Moves statements before a loop that they do not depend on."""
        ...

    def hoist_insn(
        self,
        insn: Optional[Any] = None,
    ) -> Made:
        """Moves statements before a loop that they do not depend on. Another name of `hoist`."""
        ...

    def hoist_nest(
        self,
        statements: Any,
    ) -> Made:
        """Moves statements before a loop that they do not depend on. Another name of `hoist`."""
        ...

    def inline_call(
        self,
        callee: Name,
        insn: Optional[Name] = None,
    ) -> Made:
        """Makes calls ordinary statements again."""
        ...

    def interchange(
        self,
        outer: Name,
        inner: Name,
    ) -> Made:
        """Swaps two loops of which one is directly around the other. Another name of `interchange_inames`."""
        ...

    def interchange_inames(
        self,
        outer: Name,
        inner: Name,
    ) -> Made:
        """Swaps two loops of which one is directly around the other."""
        ...

    def join_array_axes(
        self,
        var: Name,
        axis: int,
    ) -> Made:
        """Joins two neighbouring axes of a temporary or table."""
        ...

    def join_arrays(
        self,
        vars: Iterable[Name],
        into: Name,
        axis: int,
    ) -> Made:
        """Makes one array with an axis of components of several temporaries or tables."""
        ...

    def join_inames(
        self,
        outer: Name,
        inner: Name,
        joined: Optional[Name] = None,
    ) -> Made:
        """Joins two loops of a perfect nest into one."""
        ...

    def launch_hint(
        self,
        resident_groups: Optional[int] = None,
        dynamic_local: Optional[bool] = None,
        ordered_groups: Optional[bool] = None,
        sub_group: Optional[int] = None,
    ) -> Made:
        """Tells the compiler and the launch what a kernel should run with."""
        ...

    def list_elements(
        self,
        var: Name,
        at: Name,
        block: int,
        capacity: int,
        places: Optional[bool] = None,
        short: Optional[bool] = None,
        exclusive: Optional[int] = None,
    ) -> Made:
        """Reads and updates what a block of iterations reaches through a map once each."""
        ...

    def make_atomic(
        self,
        insns: Any,
    ) -> Made:
        """Makes updates indivisible."""
        ...

    def make_plain(
        self,
        insns: Any,
    ) -> Made:
        """Makes updates plain that meet no other one."""
        ...

    def map_inames(
        self,
        inames: Iterable[Name],
        matrix: Iterable[Iterable[int]],
        offset: Optional[Iterable[int]] = None,
        names: Optional[Iterable[Name]] = None,
    ) -> Made:
        """Replaces the loops of a perfect nest by an affine map of them."""
        ...

    def mirror_triangle(
        self,
        var: Name,
    ) -> Made:
        """Accumulates one triangle of a symmetric matrix and copies it to the other."""
        ...

    def move_insns(
        self,
        statements: Iterable[Name],
        to: Any,
    ) -> Made:
        """Moves statements within their body."""
        ...

    def outline_insns(
        self,
        statements: Iterable[Name],
        name: Name,
    ) -> Made:
        """Makes a callee of statements, and a call of it where they stand."""
        ...

    def pack_arrays(
        self,
        vars: Iterable[Name],
        into: Name,
    ) -> Made:
        """Puts temporaries side by side into one."""
        ...

    def pad_array(
        self,
        var: Name,
        axis: int,
        by: int,
    ) -> Made:
        """Leaves room between the rows of an array."""
        ...

    def pad_inames(
        self,
        inames: Iterable[Name],
        length: int,
    ) -> Made:
        """Runs loops further, over zeros."""
        ...

    def parallelise_scan(
        self,
        iname: Name,
        insn: Name,
        scan: Optional[Name] = None,
        tag: Optional[Name] = None,
        space: Optional[Name] = None,
        chunk: Optional[int] = None,
    ) -> Made:
        """Scans the sums of the iterations of a loop with a running total over the work-items."""
        ...

    def pass_blocks(
        self,
        map: Name,
        at: Name,
        first: int,
        places: Iterable[Iterable[int]],
    ) -> Made:
        """Passes the numbers of blocks of rows of a map once each."""
        ...

    def pass_starts(
        self,
        map: Name,
        first: int,
        length: int,
        count: int,
        above: Optional[Name] = None,
        own: Optional[bool] = None,
    ) -> Made:
        """Passes the first numbers of runs of consecutive numbers in a map."""
        ...

    def pass_table(
        self,
        var: Name,
    ) -> Made:
        """Lets the caller pass the values of a table."""
        ...

    def pass_values(
        self,
        vars: Iterable[Name],
        from_: Iterable[Name],
    ) -> Made:
        """Lets the caller pass values that depend on some inputs alone."""
        ...

    def peel_iname(
        self,
        iname: Name,
        count: int,
        end: Any,
    ) -> Made:
        """Runs the first or last iterations of a loop in a loop of their own."""
        ...

    def pipeline_loop(
        self,
        iname: Name,
        vars: Iterable[Name],
        buffers: Optional[int] = None,
        ahead: Optional[int] = None,
    ) -> Made:
        """Fills temporaries for later iterations of a loop while earlier ones use theirs."""
        ...

    def pre_evaluate_loop(
        self,
        iname: Name,
        tables: Optional[Iterable[Name]] = None,
        digits: Optional[int] = None,
    ) -> Made:
        """Evaluates the sum of a loop over products of table entries in advance."""
        ...

    def precompute_rule(
        self,
        rule: Name,
        at: Optional[Name] = None,
        space: Optional[Name] = None,
        temporary: Optional[Name] = None,
        inames: Optional[Iterable[Name]] = None,
        work_items: Optional[Iterable[int]] = None,
        footprint: Optional[Any] = None,
        insns: Optional[Any] = None,
    ) -> Made:
        """Stores what a region uses of a rule in a temporary."""
        ...

    def prefetch_array(
        self,
        var: Name,
        at: Optional[Name] = None,
        space: Optional[Name] = None,
        temporary: Optional[Name] = None,
        inames: Optional[Iterable[Name]] = None,
        work_items: Optional[Iterable[int]] = None,
        footprint: Optional[Any] = None,
        insns: Optional[Any] = None,
        only: Optional[Iterable[Name]] = None,
    ) -> Made:
        """Copies what a region reads of an array to a temporary."""
        ...

    def realise_reduction(
        self,
        iname: Name,
        accumulator: Optional[Name] = None,
        in_place: Optional[bool] = None,
    ) -> Made:
        """Turns a reduction into a loop."""
        ...

    def realise_scan(
        self,
        insn: Name,
        total: Optional[Name] = None,
    ) -> Made:
        """Turns a sum over the earlier iterations, or a recurrence, into a running total."""
        ...

    def reassociate(
        self,
        insn: Name,
    ) -> Made:
        """Orders sums and products by the loops that their operands depend on."""
        ...

    def reduce_in_tree(
        self,
        iname: Name,
        tree: Optional[Name] = None,
        tag: Optional[Name] = None,
        shuffle: Optional[bool] = None,
    ) -> Made:
        """Joins the terms of an update pairwise, in logarithmically many steps."""
        ...

    def remove_unused_vars(
        self,
    ) -> Made:
        """Drops the temporaries and tables that nothing mentions."""
        ...

    def rename(
        self,
        kind: Any,
        from_: Name,
        to: Name,
    ) -> Made:
        """Gives a loop, an instruction, a temporary or a rule another name."""
        ...

    def reorder_rows(
        self,
        iname: Name,
        map: Name,
        points: Name,
        block: int,
        places: Optional[Iterable[Iterable[int]]] = None,
    ) -> Made:
        """Runs iterations in compact blocks, by inputs with their rows in that order."""
        ...

    def replace_with_intrinsic(
        self,
        statements: Iterable[Name],
        callee: Name,
    ) -> Made:
        """Makes statements a call of a kernel whose meaning they are."""
        ...

    def rescale_reduction(
        self,
        max: Name,
        sums: Iterable[Name],
        along: Name,
    ) -> Made:
        """Turns a maximum and the sums of exponentials below it into one loop that rescales the sums."""
        ...

    def reschedule(
        self,
        subtree: Any,
        loops: Iterable[Name],
        maps: Mapping[str, Any],
        then: Optional[Iterable[Any]] = None,
    ) -> Made:
        """Runs the statements of a subtree in the order of affine maps."""
        ...

    def reverse_iname(
        self,
        iname: Name,
    ) -> Made:
        """Runs a loop backward."""
        ...

    def roll_insns(
        self,
        insns: Iterable[Name],
        iname: Name,
    ) -> Made:
        """Makes a loop of statements that repeat each other."""
        ...

    def separate_array(
        self,
        var: Name,
        axis: int,
    ) -> Made:
        """Makes one array of each index along an axis of a temporary."""
        ...

    def set_address_space(
        self,
        var: Name,
        space: Name,
    ) -> Made:
        """Moves a temporary or a table to other memory."""
        ...

    def set_dynamic_local(
        self,
    ) -> Made:
        """Tells the compiler and the launch what a kernel should run with. Another name of `launch_hint`."""
        ...

    def set_precision(
        self,
        vars: Iterable[Name],
        precision: Any,
    ) -> Made:
        """Changes the precision of real variables."""
        ...

    def set_resident_groups(
        self,
        groups: Optional[Any] = None,
    ) -> Made:
        """Tells the compiler and the launch what a kernel should run with. Another name of `launch_hint`."""
        ...

    def share_elements(
        self,
        var: Name,
        at: Name,
        numbers: Name,
    ) -> Made:
        """Reads and updates what an iteration reaches through numbers once each."""
        ...

    def shift_iname(
        self,
        iname: Name,
        by: int,
        params: Optional[Mapping[str, Any]] = None,
    ) -> Made:
        """Lets a loop count from elsewhere."""
        ...

    def sink_accumulation(
        self,
        var: Name,
        into: Name,
    ) -> Made:
        """Zeroes and commits an accumulator in every iteration of a loop instead of around it."""
        ...

    def skew_iname(
        self,
        iname: Name,
        outer: Name,
        factor: int,
    ) -> Made:
        """Adds a multiple of an outer loop to the values of an inner one."""
        ...

    def skip_zero_blocks(
        self,
        iname: Name,
        equal: Name,
    ) -> Made:
        """Runs a loop over blocks of a sum for the one that is not zero."""
        ...

    def skip_zero_terms(
        self,
        insns: Any,
    ) -> Made:
        """Leaves out the terms of a sum that a table makes zero."""
        ...

    def slide_array(
        self,
        var: Name,
        axis: int,
        iname: Name,
    ) -> Made:
        """Keeps elements of a temporary at places that move along with a loop."""
        ...

    def split_accumulation(
        self,
        var: Name,
        before: Name,
        part: Optional[Name] = None,
    ) -> Made:
        """Commits an accumulator half-way and accumulates the rest in a temporary of its own."""
        ...

    def split_array_axis(
        self,
        var: Name,
        axis: int,
        factor: int,
    ) -> Made:
        """Splits an axis of an array into blocks of constant length."""
        ...

    def split_iname(
        self,
        iname: Name,
        factor: int,
        outer: Optional[Name] = None,
        inner: Optional[Name] = None,
        tail: Optional[Any] = None,
    ) -> Made:
        """Splits a loop into blocks of constant length."""
        ...

    def split_launch(
        self,
        before: Iterable[Name],
        names: Optional[Iterable[Name]] = None,
    ) -> Made:
        """Begins a new launch before statements."""
        ...

    def split_lives(
        self,
        iname: Name,
        suffix: Name,
        vars: Optional[Iterable[Name]] = None,
    ) -> Made:
        """Gives a part of the program temporaries of its own."""
        ...

    def split_sum(
        self,
        insn: Name,
        from_: Optional[int] = None,
    ) -> Made:
        """Stores a sum term by term, by a store and updates."""
        ...

    def stage_value(
        self,
        insn: Name,
        temporary: Name,
    ) -> Made:
        """Computes the value of an instruction into a temporary first."""
        ...

    def sum_moments(
        self,
        iname: Name,
        tables: Iterable[Name],
        digits: Optional[int] = None,
    ) -> Made:
        """Sums products of table entries as moments, in a basis of the columns."""
        ...

    def tag(
        self,
        inames: Any,
        tag: Name,
        any_form: Optional[bool] = None,
    ) -> Made:
        """Says where the iterations of loops run."""
        ...

    def tag_iname(
        self,
        iname: Optional[Any] = None,
        tag: Optional[Name] = None,
    ) -> Made:
        """Says where the iterations of loops run. Another name of `tag`."""
        ...

    def tag_inames(
        self,
        inames: Any,
        tag: Name,
    ) -> Made:
        """Says where the iterations of loops run. Another name of `tag`."""
        ...

    def tile_band(
        self,
        loops: Iterable[Name],
        sizes: Iterable[int],
        by: Optional[Iterable[Name]] = None,
        names: Optional[Iterable[Name]] = None,
    ) -> Made:
        """Puts loops over tiles, along any directions, around a perfect nest."""
        ...

    def touch_array(
        self,
        var: Name,
        at: Optional[Name] = None,
        space: Optional[Name] = None,
        temporary: Optional[Name] = None,
        inames: Optional[Iterable[Name]] = None,
        ahead: Optional[int] = None,
    ) -> Made:
        """Reads what a region is going to read of an array, for a cache."""
        ...

    def transpose_array_axes(
        self,
        var: Name,
        order: Iterable[int],
    ) -> Made:
        """Changes the order of the axes of an array in memory."""
        ...

    def unroll_iname(
        self,
        iname: Optional[Any] = None,
    ) -> Made:
        """Says where the iterations of loops run. Another name of `tag`."""
        ...

    def use_double_single(
        self,
    ) -> Made:
        """Computes with reals of 64 bits as pairs of `f32`."""
        ...

    def use_symmetry(
        self,
        var: Name,
        axes: Iterable[Any],
        negated: Optional[bool] = None,
        insns: Optional[Any] = None,
    ) -> Made:
        """Loads the mirror image of an element in its place."""
        ...

    def vectorise_iname(
        self,
        iname: Optional[Any] = None,
    ) -> Made:
        """Says where the iterations of loops run. Another name of `tag`."""
        ...

    def write_out(
        self,
        iname: Name,
    ) -> Made:
        """Writes the iterations of a loop as statements of their own."""
        ...
