// What a person does to find and use a thing on a page. Called as (act, wanted, extra); the answer is an object with
// `done`, and what was found, or with `why` not. The caller asks again until it is done or the time is over.
(act, wanted, extra) => {
    const PRESSED = 'a[href], button, input[type=submit], input[type=button], input[type=reset], input[type=image], ' +
        'summary, [role=button], [role=link], [role=tab], [role=menuitem]';
    const TICKED = 'input[type=checkbox], input[type=radio], [role=checkbox], [role=radio], [role=switch]';
    const FILLED = 'input:not([type=hidden], [type=submit], [type=button], [type=reset], [type=image], ' +
        '[type=checkbox], [type=radio]), textarea, select, [contenteditable=true], [role=combobox]';
    const PLACES = 'tr, li, dl, article, section, fieldset, form, dialog, details, nav, [role=region], [role=row], .card';
    const KINDS = { press: PRESSED, tick: TICKED, fill: FILLED, select: FILLED, value: FILLED, attach: FILLED };

    const plain = (text) => (text ?? '').replace(/\s+/g, ' ').trim();
    const isVisible = (element) =>
        element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
    const html = (element) => element.cloneNode(false).outerHTML.slice(0, 200);

    // The text of a label without that of the list that stands inside it.
    const labelText = (label) => {
        if (!label.querySelector('select, textarea, button')) return plain(label.innerText);
        const copy = label.cloneNode(true);
        copy.querySelectorAll('select, textarea, button').forEach((control) => control.remove());
        return plain(copy.textContent);
    };
    const nameOf = (element) => {
        const ids = plain(element.getAttribute('aria-labelledby')).split(' ').filter(Boolean);
        const by = ids.map((id) => document.getElementById(id)?.innerText).join(' ');
        const labels = [...(element.labels ?? [])].map(labelText).join(' ');
        const isInput = element.matches('input, textarea, select');
        const own = element.matches('input[type=submit], input[type=button], input[type=reset]') ? element.value : '';
        const image = element.querySelector('img[alt], svg title');
        const names = [by, element.getAttribute('aria-label'), labels, isInput ? own : element.innerText, element.alt,
            image?.alt ?? image?.textContent, element.placeholder, element.title];
        return names.map(plain).find(Boolean) ?? '';
    };

    const byCss = (root, css) => {
        try {
            return [...root.querySelectorAll(css)];
        } catch {
            return [];
        }
    };
    const place = (words) => {
        const found = byCss(document, words).find(isVisible);
        if (found) return found;
        const holding = [...document.querySelectorAll(PLACES)]
            .filter((each) => isVisible(each) && plain(each.innerText).includes(plain(words)));
        return holding.find((each) => !holding.some((other) => other !== each && each.contains(other)));
    };

    const find = () => {
        let root = document;
        let name = wanted;
        const at = wanted.lastIndexOf(' >> ');
        if (at >= 0) {
            root = place(wanted.slice(0, at));
            name = wanted.slice(at + 4);
            if (!root) return { why: `nothing visible says "${wanted.slice(0, at)}"` };
        }
        const kind = KINDS[act];
        // A box may be drawn by its label and be itself invisible.
        const shows = (element) => isVisible(element) || (element.labels && [...element.labels].some(isVisible));
        const all = [...root.querySelectorAll(kind)].filter(shows);
        const named = all.map((element) => ({ element, name: nameOf(element) }));
        const low = plain(name).toLowerCase();
        const fits = [
            (each) => each.name === plain(name),
            (each) => each.name.toLowerCase() === low,
            (each) => each.name.toLowerCase().startsWith(low),
            (each) => each.name.toLowerCase().includes(low),
        ];
        const isCss = /^[#.[]|[[\]>=]/.test(name);
        for (const fit of isCss ? [] : fits) {
            const found = named.filter(fit).map((each) => each.element);
            const isOne = found.length === 1 || (found.length > 1 && found.every((each) => each.href && each.href === found[0].href));
            if (isOne) return { element: found[0] };
            if (found.length > 1) {
                const shown = found.slice(0, 5).map(html).join('\n  ');
                return { why: `${found.length} are called "${name}"; say where, as in "place >> ${name}":\n  ${shown}` };
            }
        }
        const element = byCss(root, name).find(shows);
        if (element) return { element };
        const names = named.map((each) => `"${each.name}"`).slice(0, 40).join(', ');
        return { why: `there is none called "${name}"; there are: ${names || 'none'}` };
    };

    // The middle of the element's first line, once nothing lies over it.
    const point = (element) => {
        const target = isVisible(element) ? element : [...element.labels].find(isVisible);
        target.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
        const box = [...target.getClientRects()].find((each) => each.width > 0 && each.height > 0);
        if (!box) return { why: 'it has no size' };
        const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
        const hit = document.elementFromPoint(x, y);
        const isHit = hit && (target.contains(hit) || [...(element.labels ?? [])].some((label) => label.contains(hit)));
        return isHit ? { done: true, x, y } : { why: `it lies under ${hit ? html(hit) : 'nothing that can be hit'}` };
    };

    // The button that sends the form in which the focus is, or else the first form of the page's main part.
    const submitter = () => {
        const form = document.activeElement?.closest('form') ?? document.querySelector('main form') ?? document.forms[0];
        const buttons = [...(form?.elements ?? [])].filter((each) => each.type === 'submit' && isVisible(each));
        return buttons.length ? { element: buttons[0] } : { why: 'no form with a button that sends it' };
    };

    const { element, why } = act === 'submit' ? submitter() : find();
    if (why) return { why };
    if (act === 'value') return { done: true, value: element.value ?? plain(element.innerText) };
    if (act === 'attach') return { done: true, element };
    if (element.disabled || element.getAttribute('aria-disabled') === 'true') return { why: `it is disabled: ${html(element)}` };
    if (act === 'press' || act === 'submit') return point(element);
    if (act === 'tick') {
        const isTicked = element.checked ?? element.getAttribute('aria-checked') === 'true';
        return isTicked === extra ? { done: true } : point(element);
    }
    if (act === 'select') {
        const options = [...(element.options ?? [])];
        const option = options.find((each) => plain(each.label) === plain(extra))
            ?? options.find((each) => plain(each.label).startsWith(plain(extra)))
            ?? options.find((each) => each.value === extra);
        if (!option) return { why: `no option "${extra}"; there are: ${options.map((each) => `"${plain(each.label)}"`).join(', ')}` };
        element.focus();
        option.selected = true;
        element.dispatchEvent(new Event('input', { bubbles: true }));
        element.dispatchEvent(new Event('change', { bubbles: true }));
        return { done: true };
    }
    if (element.readOnly) return { why: `it cannot be changed: ${html(element)}` };
    element.scrollIntoView({ block: 'center', behavior: 'instant' });
    element.focus();
    // Fields that are made of parts, such as dates, are not typed into as one text.
    if (/^(date|time|datetime-local|month|week|color|range)$/.test(element.type)) {
        element.value = extra;
        if (element.value !== extra) return { why: `it does not take "${extra}": ${html(element)}` };
        element.dispatchEvent(new Event('input', { bubbles: true }));
        element.dispatchEvent(new Event('change', { bubbles: true }));
        return { done: true };
    }
    if (element.select) element.select();
    else document.getSelection().selectAllChildren(element);
    return { done: true, type: true };
}
