// Finds an element on a page and prepares an action. Called as (action, wanted, extra). Returns an object with `done`
// and the result, or with the `reason` why it is not done. The caller repeats the call until it is done or its time is
// up.
(action, wanted, extra) => {
    const CLICKABLE = 'a[href], button, input[type=submit], input[type=button], input[type=reset], input[type=image], ' +
        'summary, [role=button], [role=link], [role=tab], [role=menuitem]';
    const TICKABLE = 'input[type=checkbox], input[type=radio], [role=checkbox], [role=radio], [role=switch]';
    const FILLABLE = 'input:not([type=hidden], [type=submit], [type=button], [type=reset], [type=image], ' +
        '[type=checkbox], [type=radio]), textarea, select, [contenteditable=true], [role=combobox]';
    const CONTAINERS = 'tr, li, dl, article, section, fieldset, form, dialog, details, nav, [role=region], [role=row], .card';
    const SELECTORS = {
        press: CLICKABLE, tick: TICKABLE, fill: FILLABLE, select: FILLABLE, value: FILLABLE, attach: FILLABLE,
    };

    const plain = (text) => (text ?? '').replace(/\s+/g, ' ').trim();
    const isVisible = (element) =>
        element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
    const html = (element) => element.cloneNode(false).outerHTML.slice(0, 200);

    // The text of a label without that of the controls inside it.
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
    // The innermost container with this text.
    const container = (text) => {
        const found = byCss(document, text).find(isVisible);
        if (found) return found;
        const matching = [...document.querySelectorAll(CONTAINERS)]
            .filter((each) => isVisible(each) && plain(each.innerText).includes(plain(text)));
        return matching.find((each) => !matching.some((other) => other !== each && each.contains(other)));
    };

    const find = () => {
        let root = document;
        let name = wanted;
        const at = wanted.lastIndexOf(' >> ');
        if (at >= 0) {
            root = container(wanted.slice(0, at));
            name = wanted.slice(at + 4);
            if (!root) return { reason: `nothing visible contains "${wanted.slice(0, at)}"` };
        }
        // A checkbox may be invisible if its label draws it.
        const shows = (element) => isVisible(element) || (element.labels && [...element.labels].some(isVisible));
        const all = [...root.querySelectorAll(SELECTORS[action])].filter(shows);
        const named = all.map((element) => ({ element, name: nameOf(element) }));
        const lower = plain(name).toLowerCase();
        const matches = [
            (each) => each.name === plain(name),
            (each) => each.name.toLowerCase() === lower,
            (each) => each.name.toLowerCase().startsWith(lower),
            (each) => each.name.toLowerCase().includes(lower),
        ];
        const isCss = /^[#.[]|[[\]>=]/.test(name);
        for (const match of isCss ? [] : matches) {
            const found = named.filter(match).map((each) => each.element);
            const isOne = found.length === 1 || (found.length > 1 && found.every((each) => each.href && each.href === found[0].href));
            if (isOne) return { element: found[0] };
            if (found.length > 1) {
                const shown = found.slice(0, 5).map(html).join('\n  ');
                return { reason: `${found.length} are called "${name}"; say where, as in "container >> ${name}":\n  ${shown}` };
            }
        }
        const element = byCss(root, name).find(shows);
        if (element) return { element };
        const names = named.map((each) => `"${each.name}"`).slice(0, 40).join(', ');
        return { reason: `there is none called "${name}"; there are: ${names || 'none'}` };
    };

    // The middle of the element's first line, if nothing covers it.
    const point = (element) => {
        const target = isVisible(element) ? element : [...element.labels].find(isVisible);
        target.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
        const box = [...target.getClientRects()].find((each) => each.width > 0 && each.height > 0);
        if (!box) return { reason: 'it has no size' };
        const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
        const hit = document.elementFromPoint(x, y);
        const isHit = hit && (target.contains(hit) || [...(element.labels ?? [])].some((label) => label.contains(hit)));
        return isHit ? { done: true, x, y } : { reason: `it is covered by ${hit ? html(hit) : 'nothing that can be clicked'}` };
    };

    // The submit button of the form that has the focus, or else of the first form in the page's main part.
    const submitter = () => {
        const form = document.activeElement?.closest('form') ?? document.querySelector('main form') ?? document.forms[0];
        const buttons = [...(form?.elements ?? [])].filter((each) => each.type === 'submit' && isVisible(each));
        return buttons.length ? { element: buttons[0] } : { reason: 'no form with a submit button' };
    };

    const { element, reason } = action === 'submit' ? submitter() : find();
    if (reason) return { reason };
    if (action === 'value') return { done: true, value: element.value ?? plain(element.innerText) };
    if (action === 'attach') return { done: true, element };
    if (element.disabled || element.getAttribute('aria-disabled') === 'true') return { reason: `it is disabled: ${html(element)}` };
    if (action === 'press' || action === 'submit') return point(element);
    if (action === 'tick') {
        const isTicked = element.checked ?? element.getAttribute('aria-checked') === 'true';
        return isTicked === extra ? { done: true } : point(element);
    }
    if (action === 'select') {
        const options = [...(element.options ?? [])];
        const option = options.find((each) => plain(each.label) === plain(extra))
            ?? options.find((each) => plain(each.label).startsWith(plain(extra)))
            ?? options.find((each) => each.value === extra);
        if (!option) return { reason: `no option "${extra}"; there are: ${options.map((each) => `"${plain(each.label)}"`).join(', ')}` };
        element.focus();
        option.selected = true;
        element.dispatchEvent(new Event('input', { bubbles: true }));
        element.dispatchEvent(new Event('change', { bubbles: true }));
        return { done: true };
    }
    if (element.readOnly) return { reason: `it cannot be changed: ${html(element)}` };
    element.scrollIntoView({ block: 'center', behavior: 'instant' });
    element.focus();
    // Fields with several parts, such as dates, cannot be filled by typing one text.
    if (/^(date|time|datetime-local|month|week|color|range)$/.test(element.type)) {
        element.value = extra;
        if (element.value !== extra) return { reason: `it does not accept "${extra}": ${html(element)}` };
        element.dispatchEvent(new Event('input', { bubbles: true }));
        element.dispatchEvent(new Event('change', { bubbles: true }));
        return { done: true };
    }
    if (element.select) element.select();
    else document.getSelection().selectAllChildren(element);
    return { done: true, type: true };
}
